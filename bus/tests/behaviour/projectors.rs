//! Projectors from outside: what comes out, what a restart keeps, what happens when topics go away under them, and
//! that two of them do not get into each other's way.

use crate::support::*;
use prombus::{
    Bus, BusOptions, Emitter, EventFields, ProcessProjector, Projector, ProjectorHandle,
    PublishOptions, Rebuild, StoredEvent, TopicConfig,
};
use serde_json::{Value, json};
use std::sync::Arc;

const BEATS: &str = "heartbeat.received";
const STATES: &str = "process.state";

fn open(store: &Arc<TestStore>, options: &BusOptions) -> Bus {
    Bus::open(store.clone(), options.clone()).expect("the options are good")
}

fn project(bus: &Bus) -> ProjectorHandle {
    bus.run_projector(ProcessProjector::default())
        .expect("it starts")
}

async fn beat(bus: &Bus, pid: u64) -> String {
    let payload = json!({"pid": pid, "name": "api", "host": "web", "cpu_pct": 1.5, "mem_mb": 64});
    let published = bus.publish(BEATS, &payload, &plain()).await;
    published.expect("it is stored").id.to_string()
}

/// Of each event in the output: its key, its status, and what caused it.
async fn states(bus: &Bus) -> Vec<(String, String, Vec<String>)> {
    let shared_status = |event: &StoredEvent| {
        let payload: Value = serde_json::from_str(event.payload()).expect("JSON");
        let status = payload["status"].as_str().expect("a status").to_owned();
        let key = event.key().expect("a key").into_owned();
        assert_eq!(payload["processId"], key);
        (key, status, EventFields::of(event).caused_by)
    };
    read_all(bus, STATES)
        .await
        .iter()
        .map(shared_status)
        .collect()
}

fn shared_status(pid: u64, status: &str, beat: &str) -> (String, String, Vec<String>) {
    (format!("web:api:{pid}"), status.into(), vec![beat.into()])
}

#[tokio::test(start_paused = true)]
async fn heartbeats_become_states_and_silence_makes_them_stale() {
    let bus = bus();
    let handle = project(&bus);
    let first = beat(&bus, 1).await;
    sleep(1).await;
    assert_eq!(states(&bus).await, [shared_status(1, "alive", &first)]);
    sleep(14_000).await;
    assert_eq!(states(&bus).await.len(), 1);
    sleep(6_000).await;
    assert_eq!(
        states(&bus).await[1..],
        [shared_status(1, "stale", &first)],
        "15 seconds, looked at every 5"
    );
    sleep(100_000).await;
    assert_eq!(states(&bus).await.len(), 2, "once is enough");
    let second = beat(&bus, 1).await;
    sleep(1).await;
    assert_eq!(
        states(&bus).await[2..],
        [shared_status(1, "alive", &second)]
    );
    let config = TopicConfig::of(&bus.topic(STATES).expect("it exists"));
    assert!(config.compaction, "only the latest state counts");
    let status = handle.status();
    assert_eq!((status.position, status.lag, status.emitted), (2, 0, 3));
    assert_eq!((status.last_error, status.is_standby), (None, false));
}

#[tokio::test(start_paused = true)]
async fn what_died_while_the_projector_was_down_is_stale_when_it_is_back() {
    let (store, options) = store();
    let bus = open(&store, &options);
    let handle = project(&bus);
    let first = beat(&bus, 1).await;
    let second = beat(&bus, 2).await;
    sleep(1).await;
    handle.stop().await;
    sleep(10_000).await;
    // These come while nobody looks.
    let third = beat(&bus, 2).await;
    sleep(10_000).await;
    drop(bus);

    let bus = open(&store, &options);
    let _handle = project(&bus);
    sleep(1).await;
    let expected = [
        shared_status(1, "alive", &first),
        shared_status(2, "alive", &second),
        shared_status(2, "alive", &third),
        shared_status(1, "stale", &first),
    ];
    assert_eq!(states(&bus).await, expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_heartbeat_is_counted_and_stops_nothing() {
    let bus = bus();
    let handle = project(&bus);
    for payload in ["null", "7", r#"{"pid":"x"}"#, "[]"] {
        let published = bus.publish_text(BEATS, payload, &plain());
        published.await.expect("it is stored");
    }
    let good = beat(&bus, 1).await;
    sleep(1).await;
    assert_eq!(states(&bus).await, [shared_status(1, "alive", &good)]);
    let status = handle.status();
    assert_eq!((status.rejected, status.position), (4, 5));
    assert!(status.last_rejection.is_some());
    handle.stop().await;
    let handle = project(&bus);
    sleep(1).await;
    assert_eq!(handle.status().rejected, 4, "the count is kept");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_while_costs_nothing() {
    let (store, options) = store();
    let bus = open(&store, &options);
    let handle = project(&bus);
    let mut expected = vec![shared_status(1, "alive", &beat(&bus, 1).await)];
    sleep(1).await;
    store.refuse_reads(true);
    expected.push(shared_status(1, "alive", &beat(&bus, 1).await));
    sleep(1_000).await;
    let error = handle.status().last_error.expect("it says so");
    assert!(error.contains("the test says so"), "{error}");
    store.refuse_reads(false);
    sleep(1_000).await;
    assert_eq!(handle.status().last_error, None);
    assert_eq!(states(&bus).await, expected);
    for fault in [CommitFault::Refused, CommitFault::Denied] {
        store.fail_commit(0, fault);
        expected.push(shared_status(1, "alive", &beat(&bus, 1).await));
        sleep(1).await;
        assert!(handle.status().last_error.is_some(), "{fault:?}");
        sleep(1_000).await;
        assert_eq!(states(&bus).await, expected, "{fault:?}");
        assert_eq!(handle.status().last_error, None, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_runners_one_works_and_the_other_takes_over_when_it_is_gone() {
    let (store, options) = store();
    let (one_bus, other_bus) = (open(&store, &options), open(&store, &options));
    let (one, other) = (project(&one_bus), project(&other_bus));
    let mut expected = Vec::new();
    for pid in 0..50 {
        expected.push(shared_status(
            pid % 2,
            "alive",
            &beat(&one_bus, pid % 2).await,
        ));
        sleep(1_000).await;
    }
    assert_eq!(states(&one_bus).await, expected);
    assert!(one.status().is_standby != other.status().is_standby);
    let (working, waiting) = if one.status().is_standby {
        (other, one)
    } else {
        (one, other)
    };
    working.stop().await;
    expected.push(shared_status(0, "alive", &beat(&one_bus, 0).await));
    sleep(60_000).await;
    assert!(!waiting.status().is_standby);
    let now = states(&one_bus).await;
    let stale = |state: &(String, String, Vec<String>)| state.1 == "stale";
    assert_eq!(now.iter().filter(|state| stale(state)).count(), 2);
    let alive: Vec<_> = now.into_iter().filter(|state| !stale(state)).collect();
    assert_eq!(alive, expected);
}

#[tokio::test(start_paused = true)]
async fn an_output_that_was_deleted_or_emptied_is_made_anew_from_the_log() {
    let (store, options) = store();
    let bus = open(&store, &options);
    let handle = project(&bus);
    let beats = [beat(&bus, 1).await, beat(&bus, 2).await];
    let expected = [
        shared_status(1, "alive", &beats[0]),
        shared_status(2, "alive", &beats[1]),
    ];
    sleep(1).await;
    assert_eq!(states(&bus).await, expected);
    handle.stop().await;
    bus.delete_topic(STATES).await.expect("deleted");
    let handle = project(&bus);
    sleep(1).await;
    assert_eq!(states(&bus).await, expected, "deleted while it was down");

    bus.delete_topic(STATES).await.expect("deleted");
    let third = beat(&bus, 3).await;
    sleep(1).await;
    let mut expected = expected.to_vec();
    expected.push(shared_status(3, "alive", &third));
    assert_eq!(states(&bus).await, expected, "deleted while it ran");
    assert!(TopicConfig::of(&bus.topic(STATES).expect("there")).compaction);

    handle.stop().await;
    bus.purge_topic(STATES).await.expect("purged");
    let _handle = project(&bus);
    sleep(1).await;
    assert_eq!(states(&bus).await, expected, "emptied while it was down");
}

#[tokio::test(start_paused = true)]
async fn a_lost_record_is_found_again_by_what_the_output_names_as_its_causes() {
    let (store, options) = store();
    let bus = open(&store, &options);
    let handle = project(&bus);
    let first = beat(&bus, 1).await;
    sleep(21_000).await;
    let second = beat(&bus, 2).await;
    sleep(1).await;
    handle.stop().await;
    let mut batch = prombus_store::Batch::new();
    batch.change(prombus_store::Change::Delete {
        key: "projector/process".into(),
        expect: prombus_store::Expect::Any,
    });
    prombus::Store::commit(&*store, batch).await.expect("gone");
    let third = beat(&bus, 1).await;
    let handle = project(&bus);
    sleep(1).await;
    let expected = [
        shared_status(1, "alive", &first),
        shared_status(1, "stale", &first),
        shared_status(2, "alive", &second),
        shared_status(1, "alive", &third),
    ];
    assert_eq!(states(&bus).await, expected);
    assert_eq!(handle.status().position, 3);
}

#[tokio::test(start_paused = true)]
async fn an_input_that_was_made_again_is_read_from_its_beginning() {
    let (store, options) = store();
    let bus = open(&store, &options);
    let handle = project(&bus);
    for _ in 0..3 {
        beat(&bus, 1).await;
    }
    sleep(1).await;
    // While it runs, and shorter than before.
    bus.delete_topic(BEATS).await.expect("deleted");
    sleep(1).await;
    let fourth = beat(&bus, 1).await;
    sleep(1_000).await;
    assert_eq!(
        states(&bus).await[3..],
        [shared_status(1, "alive", &fourth)]
    );
    handle.stop().await;
    // While it does not, and longer than before.
    bus.delete_topic(BEATS).await.expect("deleted");
    let more = [
        beat(&bus, 2).await,
        beat(&bus, 2).await,
        beat(&bus, 2).await,
    ];
    let handle = project(&bus);
    sleep(1).await;
    let expected: Vec<_> = more
        .iter()
        .map(|id| shared_status(2, "alive", id))
        .collect();
    assert_eq!(states(&bus).await[4..], expected);
    assert_eq!((handle.status().position, handle.status().lag), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn what_retention_took_is_counted_as_skipped() {
    let (store, options) = store();
    let bus = open(&store, &options);
    let handle = project(&bus);
    beat(&bus, 1).await;
    sleep(1).await;
    handle.stop().await;
    for _ in 0..4 {
        beat(&bus, 1).await;
    }
    bus.purge_topic(BEATS).await.expect("purged");
    let last = beat(&bus, 1).await;
    let handle = project(&bus);
    sleep(1).await;
    assert_eq!(states(&bus).await[1..], [shared_status(1, "alive", &last)]);
    assert_eq!(handle.status().skipped, 4);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_said_and_left_as_it_is() {
    let (store, options) = store();
    let bus = open(&store, &options);
    let mut batch = prombus_store::Batch::new();
    batch.change(prombus_store::Change::Put {
        key: "projector/process".into(),
        value: b"{".as_slice().into(),
        expect: prombus_store::Expect::Any,
    });
    prombus::Store::commit(&*store, batch).await.expect("there");
    let handle = project(&bus);
    beat(&bus, 1).await;
    sleep(1_000).await;
    let error = handle.status().last_error.expect("it says so");
    assert!(error.contains("projector/process"), "{error}");
    assert!(bus.topic(STATES).is_err(), "nothing was emitted");
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_the_bus_and_makes_its_topic_where_none_may_be_made() {
    let (store, options) = store();
    let options = BusOptions {
        auto_create_topics: false,
        ..options
    };
    let bus = open(&store, &options);
    let handle = project(&bus);
    let config = TopicConfig::default();
    bus.create_topic(BEATS, &config).await.expect("made");
    let first = beat(&bus, 1).await;
    sleep(1).await;
    assert_eq!(states(&bus).await, [shared_status(1, "alive", &first)]);
    bus.close().await.expect("closed");
    sleep(1).await;
    assert!(handle.has_ended());
    assert!(bus.run_projector(ProcessProjector::default()).is_err());
}

/// Sums up numbers, and keeps its sum nowhere but in its state.
struct Sums;

impl Projector for Sums {
    type State = u64;

    fn name(&self) -> &str {
        "sums"
    }

    fn input(&self) -> &str {
        "numbers"
    }

    fn output(&self) -> &str {
        "sums.over-ten"
    }

    fn rebuild(&self) -> Rebuild {
        Rebuild::FromInput
    }

    fn fold(&self, sum: &mut u64, event: &StoredEvent, _now_ms: u64, emit: &mut Emitter) {
        *sum += event.payload().parse::<u64>().expect("a number");
        if *sum > 10 {
            let options = PublishOptions {
                id: Some("ignored"),
                ..key("sum")
            };
            emit.emit(sum, &options).expect("emitted");
            *sum = 0;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_not_in_the_output_is_folded_again_from_the_input() {
    let bus = bus();
    let handle = bus.run_projector(Sums).expect("it starts");
    publish(&bus, "numbers", 6).await;
    sleep(1).await;
    handle.stop().await;
    // 1 2 3 4 5 is 15, and 6 is remembered.
    let handle = bus.run_projector(Sums).expect("it starts");
    sleep(1).await;
    publish_one(&bus, "numbers", 5).await;
    publish_one(&bus, "numbers", 1).await;
    sleep(1).await;
    let sums: Vec<String> = read_all(&bus, "sums.over-ten")
        .await
        .iter()
        .map(|event| event.payload().to_owned())
        .collect();
    assert_eq!(sums, ["15", "11"]);
    assert_eq!(handle.status().position, 8);
}

/// Cannot bear a certain number.
struct Touchy;

impl Projector for Touchy {
    type State = ();

    fn name(&self) -> &str {
        "touchy"
    }

    fn input(&self) -> &str {
        "numbers"
    }

    fn output(&self) -> &str {
        "touched"
    }

    fn fold(&self, (): &mut (), event: &StoredEvent, _now_ms: u64, emit: &mut Emitter) {
        assert_ne!(event.payload(), "2", "not this one");
        emit.emit(&1, &key("n")).expect("emitted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_said_and_nothing_of_its_page_happens() {
    let bus = bus();
    let handle = bus.run_projector(Touchy).expect("it starts");
    publish(&bus, "numbers", 1).await;
    sleep(1).await;
    assert_eq!(handle.status().last_error, None);
    publish(&bus, "numbers", 3).await;
    sleep(1).await;
    let status = handle.status();
    assert!(handle.has_ended());
    assert!(status.last_error.is_some_and(|why| why.contains("panic")));
    assert_eq!(
        read_all(&bus, "touched").await.len() as u64,
        status.position
    );
}

#[tokio::test(start_paused = true)]
async fn a_bus_tells_of_the_projectors_that_run_on_it() {
    let bus = bus();
    assert_eq!(bus.projectors(), []);
    let process = project(&bus);
    let touchy = bus.run_projector(Touchy).expect("it starts");
    publish(&bus, "numbers", 1).await;
    sleep(1).await;
    let all = bus.projectors();
    let named = |at: usize| [&*all[at].name, &*all[at].input, &*all[at].output];
    assert_eq!(named(0), ["process", BEATS, STATES]);
    assert_eq!(named(1), ["touchy", "numbers", "touched"]);
    assert_eq!(all[0].status, process.status());
    assert_eq!((all[1].status.position, all[1].status.lag), (1, 0));
    drop(process);
    let left = bus.projectors();
    assert_eq!(left.len(), 1, "{left:?}");
    touchy.stop().await;
    assert_eq!(bus.projectors(), []);
}

#[tokio::test(start_paused = true)]
async fn projectors_that_make_no_sense_are_refused() {
    struct Named(&'static str, &'static str, &'static str);
    impl Projector for Named {
        type State = ();

        fn name(&self) -> &str {
            self.0
        }

        fn input(&self) -> &str {
            self.1
        }

        fn output(&self) -> &str {
            self.2
        }

        fn fold(&self, (): &mut (), _event: &StoredEvent, _now_ms: u64, _emit: &mut Emitter) {}
    }
    let bus = bus();
    for bad in [
        Named("", "in", "out"),
        Named("a/b", "in", "out"),
        Named("n", "no topic", "out"),
        Named("n", "in", ""),
        Named("n", "same", "same"),
    ] {
        assert!(bus.run_projector(bad).is_err());
    }
    assert!(bus.run_projector(Named("n", "in", "out")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn much_input_is_taken_in_pages_and_large_events_too() {
    let bus = bus();
    let payload = json!({
        "pid": 1, "name": "api", "host": "web", "cpu_pct": 1, "mem_mb": 2,
        "more": "x".repeat(900_000),
    });
    let mut batch = bus.batch();
    for _ in 0..3 {
        batch.add_value(BEATS, &payload, &plain());
    }
    let small = json!({"pid": 2, "name": "api", "host": "web", "cpu_pct": 1, "mem_mb": 2});
    for _ in 0..2_000 {
        batch.add_value(BEATS, &small, &plain());
    }
    let stored = bus.publish_batch(batch).await;
    assert!(stored.iter().all(Result::is_ok));
    let handle = project(&bus);
    sleep(1).await;
    assert_eq!(states(&bus).await.len(), 2_003);
    assert_eq!((handle.status().lag, handle.status().emitted), (0, 2_003));
}
