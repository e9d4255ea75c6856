//! Effects are not repeated: what was marked is not handled again, what failed is, and where a crash may still repeat
//! something.

use crate::support::*;
use prombus::error::DedupeError;
use prombus::{
    Answer, Bus, Dedupe, DedupeStore, EffectCounts, EmbeddedDedupe, ExactlyOnce, StartAt,
    SubscribeOptions,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a mark does instead of answering.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The power goes before the mark is written.
    CrashBeforeMark,
    /// The power goes when the mark is written and nothing has been acknowledged.
    CrashAfterMark,
    /// So many calls fail.
    Fails(u64),
}

struct FaultyDedupe {
    inner: EmbeddedDedupe,
    fault: Fault,
    calls: Arc<AtomicU64>,
}

/// Which events a handler was called for, over all restarts.
#[derive(Clone, Default)]
struct Effects(Arc<Mutex<Vec<u64>>>);

impl Effects {
    fn add(&self, number: u64) {
        self.lock().push(number);
    }

    fn all(&self) -> Vec<u64> {
        let mut all = self.lock().clone();
        all.sort_unstable();
        all
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultyDedupe {
    fn fails(&self) -> bool {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        matches!(self.fault, Fault::Fails(count) if call < count)
    }
}

impl DedupeStore for FaultyDedupe {
    fn seen(&self, scope: &str, id: &str) -> Answer<bool, DedupeError> {
        if self.fails() {
            Box::pin(async { Err(DedupeError::failed("the test says so")) })
        } else {
            self.inner.seen(scope, id)
        }
    }

    fn mark(&self, scope: &str, id: &str, ttl_ms: u64) -> Answer<(), DedupeError> {
        if self.fails() {
            return Box::pin(async { Err(DedupeError::failed("the test says so")) });
        }
        match self.fault {
            Fault::CrashBeforeMark => Box::pin(std::future::pending()),
            Fault::CrashAfterMark => {
                let marking = self.inner.mark(scope, id, ttl_ms);
                Box::pin(async {
                    marking.await?;
                    std::future::pending().await
                })
            }
            _ => self.inner.mark(scope, id, ttl_ms),
        }
    }
}

async fn consume(bus: &Bus, fault: Fault, effects: &Effects) -> (ExactlyOnce, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let dedupe = Dedupe::new(FaultyDedupe {
        inner: bus.dedupe(),
        fault,
        calls: calls.clone(),
    });
    let effects = effects.clone();
    let consumer = bus
        .subscribe_exactly_once("t", "g", earliest(), dedupe, move |delivery| {
            let effects = effects.clone();
            async move {
                effects.add(delivery.event.seq());
                Ok::<_, String>(())
            }
        })
        .await
        .expect("subscribed");
    (consumer, calls)
}

fn counts(handled: u64, skipped: u64, unmarked: u64) -> EffectCounts {
    EffectCounts {
        handled,
        skipped,
        unmarked,
    }
}

/// Runs until `fault`, crashes, runs again without one, and says which effects happened.
async fn effects_around_a_crash(fault: Fault) -> (Vec<u64>, EffectCounts) {
    let (store, options) = store();
    let effects = Effects::default();
    let bus = Bus::open(store.clone(), options.clone()).expect("the options are good");
    publish(&bus, "t", 1).await;
    let (consumer, _) = consume(&bus, fault, &effects).await;
    sleep(500).await;
    // A process that dies writes nothing more.
    store.refuse_writes(true);
    drop((consumer, bus));
    sleep(1).await;
    store.refuse_writes(false);

    let bus = Bus::open(store, options).expect("the options are good");
    let (consumer, _) = consume(&bus, Fault::None, &effects).await;
    sleep(60_000).await;
    (effects.all(), consumer.counts())
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_mark_and_ack_repeats_nothing() {
    let (effects, after) = effects_around_a_crash(Fault::CrashAfterMark).await;
    assert_eq!(effects, [1]);
    assert_eq!(after, counts(0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_handler_and_mark_repeats_the_effect() {
    let (effects, after) = effects_around_a_crash(Fault::CrashBeforeMark).await;
    assert_eq!(effects, [1, 1], "this is what the documentation says");
    assert_eq!(after, counts(1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_set_back_repeats_nothing_while_marks_are_kept() {
    let bus = bus();
    let effects = Effects::default();
    publish(&bus, "t", 5).await;
    let (consumer, _) = consume(&bus, Fault::None, &effects).await;
    sleep(1_000).await;
    assert_eq!(effects.all(), [1, 2, 3, 4, 5]);
    bus.seek("t", "g", StartAt::Earliest).await.expect("moved");
    sleep(1_000).await;
    assert_eq!(effects.all(), [1, 2, 3, 4, 5]);
    assert_eq!(consumer.counts(), counts(5, 5, 0));
    assert_eq!(bus.lag("t", "g").await.expect("it exists").lag, 0);
    sleep(prombus::DEFAULT_DEDUPE_TTL_MS).await;
    bus.seek("t", "g", StartAt::Earliest).await.expect("moved");
    sleep(1_000).await;
    assert_eq!(effects.all().len(), 10, "the marks have run out");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_or_panics_is_called_again_until_it_succeeds() {
    let bus = bus();
    let (effects, tries) = (Effects::default(), Arc::new(AtomicU64::new(0)));
    publish(&bus, "t", 3).await;
    let (done, tried) = (effects.clone(), tries.clone());
    let consumer = bus
        .subscribe_exactly_once(
            "t",
            "g",
            earliest(),
            Dedupe::new(bus.dedupe()),
            move |delivery| {
                let (done, tried) = (done.clone(), tried.clone());
                async move {
                    tried.fetch_add(1, Ordering::SeqCst);
                    match delivery.context.attempt {
                        1 => Err("not yet"),
                        2 => panic!("not yet either"),
                        _ => {
                            done.add(delivery.event.seq());
                            Ok(())
                        }
                    }
                }
            },
        )
        .await
        .expect("subscribed");
    sleep(10_000).await;
    assert_eq!(effects.all(), [1, 2, 3]);
    assert_eq!(tries.load(Ordering::SeqCst), 9);
    assert_eq!(consumer.counts(), counts(3, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn marks_that_cannot_be_used_for_a_while_cost_no_attempt_and_repeat_nothing() {
    let bus = bus();
    let effects = Effects::default();
    publish(&bus, "t", 2).await;
    let (consumer, calls) = consume(&bus, Fault::Fails(8), &effects).await;
    sleep(120_000).await;
    assert_eq!(effects.all(), [1, 2]);
    assert_eq!(consumer.counts(), counts(2, 0, 0));
    assert_eq!(calls.load(Ordering::SeqCst), 8 + 4);
    assert!(bus.topic("dlq.t").is_err(), "nothing counted as failed");
}

#[tokio::test(start_paused = true)]
async fn a_success_that_cannot_be_marked_is_acknowledged_and_counted() {
    let bus = bus();
    let effects = Effects::default();
    publish(&bus, "t", 1).await;
    let consumer = {
        let dedupe = Dedupe::new(OnlyReads(bus.dedupe()));
        let effects = effects.clone();
        let handler = move |delivery: prombus::Delivery| {
            let effects = effects.clone();
            async move {
                effects.add(delivery.event.seq());
                Ok::<_, String>(())
            }
        };
        bus.subscribe_exactly_once("t", "g", earliest(), dedupe, handler)
            .await
            .expect("subscribed")
    };
    sleep(300_000).await;
    assert_eq!(effects.all(), [1]);
    assert_eq!(consumer.counts(), counts(1, 0, 1));
    assert_eq!(bus.lag("t", "g").await.expect("it exists").lag, 0);
}

#[tokio::test(start_paused = true)]
async fn manual_acknowledgement_is_refused() {
    let bus = bus();
    let options = SubscribeOptions {
        manual_ack: true,
        ..earliest()
    };
    let dedupe = Dedupe::new(bus.dedupe());
    let handler = |_| async { Ok::<_, String>(()) };
    let refused = bus
        .subscribe_exactly_once("t", "g", options, dedupe, handler)
        .await
        .expect_err("refused");
    assert!(refused.to_string().contains("manual_ack"), "{refused}");
}

/// Marks that can be looked up and not be made.
struct OnlyReads(EmbeddedDedupe);

impl DedupeStore for OnlyReads {
    fn seen(&self, scope: &str, id: &str) -> Answer<bool, DedupeError> {
        self.0.seen(scope, id)
    }

    fn mark(&self, _scope: &str, _id: &str, _ttl_ms: u64) -> Answer<(), DedupeError> {
        Box::pin(async { Err(DedupeError::failed("it is full")) })
    }
}
