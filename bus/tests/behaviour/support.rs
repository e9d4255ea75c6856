//! What the tests stand on: a clock that follows tokio's virtual time, and a store that can be made to fail.

use prombus::error::{CommitError, ReadError, StoreFailed};
use prombus::{
    Bus, BusOptions, Clock, Delivery, PublishOptions, Published, StartAt, Store, StoredEvent,
    SubscribeOptions, Subscription,
};
use prombus_store::memory::MemoryStore;
use prombus_store::{Answer, Batch, Change, Keyed, Page, ReadFrom, ReadLimit, Receipt, Wrapper};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Epoch milliseconds when a test begins.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// A clock that follows tokio's, which the tests have paused.
pub(crate) struct VirtualClock(Instant);

/// A memory store that outlives the bus on it and can be told to refuse writes or reads.
pub(crate) struct TestStore {
    inner: MemoryStore,
    refuses_writes: AtomicBool,
    refuses_reads: AtomicBool,
    /// The next read panics.
    panics_on_read: AtomicBool,
    /// While set, commits happen but nobody hears of it.
    holds_answers: watch::Sender<bool>,
    /// How many more commits happen before the process is as good as dead.
    lives: AtomicU64,
    /// The last of them happens, and nobody hears of it.
    dies_unheard: AtomicBool,
    /// How many commits were asked for.
    pub(crate) commits: AtomicU64,
    /// How many events reads have asked for.
    pub(crate) asked_events: AtomicU64,
    /// What goes wrong with a commit to come, and how many commits of keyed records come before it.
    fault: Mutex<Option<(u64, CommitFault)>>,
}

/// What goes wrong with a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitFault {
    /// It is refused, and nothing is stored.
    Refused,
    /// It is stored, and answered as if it were not.
    Denied,
    /// The power goes before anything is stored: there is no answer.
    CrashBefore,
    /// The power goes when it is stored: there is no answer.
    CrashAfter,
}

impl VirtualClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        START_MS + self.0.elapsed().as_millis() as u64
    }
}

/// A store and the options to open buses on it.
pub(crate) fn store() -> (Arc<TestStore>, BusOptions) {
    let clock = VirtualClock::new();
    let store = TestStore {
        inner: MemoryStore::new(clock.clone()),
        refuses_writes: AtomicBool::new(false),
        refuses_reads: AtomicBool::new(false),
        panics_on_read: AtomicBool::new(false),
        holds_answers: watch::Sender::new(false),
        lives: AtomicU64::new(u64::MAX),
        dies_unheard: AtomicBool::new(false),
        commits: AtomicU64::new(0),
        asked_events: AtomicU64::new(0),
        fault: Mutex::new(None),
    };
    let options = BusOptions {
        clock,
        ..BusOptions::default()
    };
    (Arc::new(store), options)
}

/// A bus on a store of its own.
pub(crate) fn bus() -> Bus {
    let (store, options) = store();
    Bus::open(store, options).expect("the options are good")
}

/// The default options, from the first event on.
pub(crate) fn earliest() -> SubscribeOptions {
    SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    }
}

pub(crate) fn plain() -> PublishOptions<'static> {
    PublishOptions::default()
}

pub(crate) fn key(key: &str) -> PublishOptions<'_> {
    PublishOptions {
        key: Some(key),
        ..PublishOptions::default()
    }
}

/// Publishes the numbers `1..=count`.
pub(crate) async fn publish(bus: &Bus, topic: &str, count: u64) {
    for number in 1..=count {
        publish_one(bus, topic, number).await;
    }
}

pub(crate) async fn publish_one(bus: &Bus, topic: &str, number: u64) -> Published {
    bus.publish(topic, &number, &plain())
        .await
        .expect("it is stored")
}

/// The next delivery, which has to come within a virtual minute.
pub(crate) async fn next(subscription: &Subscription) -> Delivery {
    let next = tokio::time::timeout(Duration::from_secs(60), subscription.next());
    next.await
        .expect("one comes")
        .expect("the subscription goes on")
}

/// Asserts that nothing comes for a while.
pub(crate) async fn nothing(subscription: &Subscription, for_ms: u64) {
    let next = tokio::time::timeout(Duration::from_millis(for_ms), subscription.next());
    if let Ok(delivery) = next.await {
        panic!("nothing should come, but {delivery:?} did");
    }
}

/// Takes and acknowledges `count` deliveries and returns their positions.
pub(crate) async fn take(subscription: &Subscription, count: usize) -> Vec<u64> {
    let mut seqs = Vec::new();
    for _ in 0..count {
        let delivery = next(subscription).await;
        seqs.push(delivery.event.seq());
        delivery.ack();
    }
    seqs
}

pub(crate) async fn sleep(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Reads a whole topic.
pub(crate) async fn read_all(bus: &Bus, topic: &str) -> Vec<StoredEvent> {
    let limit = ReadLimit {
        events: 10_000,
        bytes: usize::MAX,
    };
    let page = bus
        .store()
        .read(&topic.into(), ReadFrom::Seq(1), limit)
        .await;
    page.expect("the topic can be read").events
}

impl TestStore {
    pub(crate) fn refuse_writes(&self, refuse: bool) {
        self.refuses_writes.store(refuse, Ordering::SeqCst);
    }

    pub(crate) fn refuse_reads(&self, refuse: bool) {
        self.refuses_reads.store(refuse, Ordering::SeqCst);
    }

    pub(crate) fn panic_on_read(&self) {
        self.panics_on_read.store(true, Ordering::SeqCst);
    }

    pub(crate) fn hold_answers(&self, hold: bool) {
        self.holds_answers.send_replace(hold);
    }

    /// Lets something go wrong with the commit of a keyed record behind the next `after` of them.
    pub(crate) fn fail_commit(&self, after: u64, fault: CommitFault) {
        *self.fault() = Some((after, fault));
    }

    /// Nothing goes wrong any more.
    pub(crate) fn forget_fault(&self) {
        *self.fault() = None;
    }

    /// Whether what was to go wrong has not yet.
    pub(crate) fn has_fault(&self) -> bool {
        self.fault().is_some()
    }

    fn fault(&self) -> MutexGuard<'_, Option<(u64, CommitFault)>> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What goes wrong with this commit.
    fn fault_of(&self, batch: &Batch) -> Option<CommitFault> {
        let mut changes = batch.changes().iter();
        if !changes.any(|change| matches!(change, Change::Put { .. })) {
            return None;
        }
        let mut fault = self.fault();
        match &mut *fault {
            Some((0, _)) => fault.take().map(|(_, what)| what),
            Some((after, _)) => {
                *after -= 1;
                None
            }
            None => None,
        }
    }

    /// After `commits` more nothing is written, as if the process had been killed there: before the next commit, or
    /// where it is to die `unheard` within it.
    pub(crate) fn die_after(&self, commits: u64, unheard: bool) {
        self.dies_unheard.store(unheard, Ordering::SeqCst);
        self.lives.store(commits, Ordering::SeqCst);
    }

    /// The next process finds the store as the last one left it.
    pub(crate) fn revive(&self) {
        self.lives.store(u64::MAX, Ordering::SeqCst);
    }

    /// What a commit answers where the process dies before or in it.
    fn death(&self, batch: &Batch) -> Option<Answer<Receipt, CommitError>> {
        let lives = self.lives.load(Ordering::SeqCst);
        if lives > 0 {
            self.lives.store(lives - 1, Ordering::SeqCst);
            return None;
        }
        if self.dies_unheard.swap(false, Ordering::SeqCst) {
            drop(self.inner.commit(batch.clone()));
        }
        let cause = "the process is dead".into();
        Some(Box::pin(async { Err(StoreFailed { cause }.into()) }))
    }

    fn read_refused<T>(&self) -> Option<Answer<T, ReadError>> {
        let cause: Arc<str> = "the test says so".into();
        let refuses = self.refuses_reads.load(Ordering::SeqCst);
        refuses
            .then(|| Box::pin(async { Err(ReadError::Failed { cause }) }) as Answer<T, ReadError>)
    }
}

impl Wrapper for TestStore {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        if let Some(death) = self.death(&batch) {
            return death;
        }
        let refused = || -> Answer<Receipt, CommitError> {
            let cause = "the test says so".into();
            Box::pin(async { Err(StoreFailed { cause }.into()) })
        };
        let answer = match self.fault_of(&batch) {
            _ if self.refuses_writes.load(Ordering::SeqCst) => refused(),
            None => self.inner.commit(batch),
            Some(CommitFault::Refused) => refused(),
            Some(CommitFault::Denied) => {
                drop(self.inner.commit(batch));
                refused()
            }
            Some(CommitFault::CrashBefore) => Box::pin(std::future::pending()),
            Some(CommitFault::CrashAfter) => {
                drop(self.inner.commit(batch));
                Box::pin(std::future::pending())
            }
        };
        let mut holds = self.holds_answers.subscribe();
        Box::pin(async move {
            // A store that is gone holds nothing back.
            let _ = holds.wait_for(|holds| !holds).await;
            answer.await
        })
    }

    fn read(
        &self,
        topic: &Arc<str>,
        from: ReadFrom<'_>,
        limit: ReadLimit,
    ) -> Answer<Page, ReadError> {
        let panics = self.panics_on_read.swap(false, Ordering::SeqCst);
        assert!(!panics, "the test says so");
        self.asked_events
            .fetch_add(limit.events as u64, Ordering::SeqCst);
        self.read_refused()
            .unwrap_or_else(|| self.inner.read(topic, from, limit))
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        self.read_refused().unwrap_or_else(|| self.inner.get(key))
    }

    /// Stays open, so that another bus can be opened on it.
    fn close(&self) -> Answer<(), CommitError> {
        Box::pin(async { Ok(()) })
    }
}

/// The variant of an error, for tests that compare many of them.
pub(crate) trait Kind {
    /// The variant's name, of the error inside where the variant only wraps another operation's error.
    fn kind(&self) -> &'static str;
}

impl<E: std::fmt::Debug> Kind for E {
    fn kind(&self) -> &'static str {
        // Leaked: a test has few errors, and constants are what it compares them with.
        let text: &'static str = format!("{self:?}").leak();
        let mut names = text.split(|c: char| !c.is_alphanumeric());
        let first = names.next().unwrap_or_default();
        match first {
            "Group" | "NotPublished" => names
                .find(|name| {
                    !matches!(*name, "NotPublished" | "" | "at" | "error")
                        && !name.starts_with(char::is_numeric)
                })
                .unwrap_or_default(),
            first => first,
        }
    }
}
