//! Scheduled publishing: due events come once, whatever happens to the clock, the bus and other nodes.

use crate::support::*;
use prombus::error::{PublishError, ScheduleError};
use prombus::{Bus, BusOptions, EventFields, Pattern, PublishOptions, Schedule, Scheduled};
use prombus_store::ManualClock;
use prombus_store::memory::MemoryStore;
use std::sync::Arc;
use std::time::Duration;

const MINUTE_MS: u64 = 60_000;

/// A bus on a store that outlives it, with a clock of its own.
struct Lab {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

impl Lab {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self { clock, store }
    }

    fn bus(&self) -> Bus {
        let options = BusOptions {
            clock: self.clock.clone(),
            ..BusOptions::default()
        };
        Bus::open(self.store.clone(), options).expect("a bus")
    }

    /// Moves the clock and lets the bus see it.
    async fn pass(&self, ms: u64) {
        self.clock.advance(ms);
        settle().await;
    }
}

/// Longer than the bus sleeps without looking at the clock.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(2_500)).await;
}

fn every(every: &str) -> Schedule<'_> {
    Schedule {
        every: Some(every),
        ..Schedule::default()
    }
}

async fn schedule(bus: &Bus, payload: &str, schedule: &Schedule<'_>) -> Scheduled {
    let scheduled = bus.schedule("t", payload, &plain(), schedule).await;
    scheduled.expect("it is scheduled")
}

/// The events of `t`: id, ts and payload.
async fn published(bus: &Bus) -> Vec<(String, u64, String)> {
    if bus.store().topic("t").is_none() {
        return Vec::new();
    }
    let events = read_all(bus, "t").await;
    let fields = events.iter().map(|event| {
        let payload = event.payload().to_owned();
        (event.id().into_owned(), event.ts(), payload)
    });
    fields.collect()
}

#[tokio::test(start_paused = true)]
async fn an_event_is_published_when_it_is_due_and_nobody_sees_it_before() {
    let lab = Lab::new();
    let bus = lab.bus();
    let headers = [("x-a".to_owned(), "1".to_owned())];
    let (tags, causes) = (["#t".to_owned()], ["c".to_owned()]);
    let options = PublishOptions {
        key: Some("k"),
        headers: &headers,
        tags: &tags,
        caused_by: &causes,
        sid: Some("s"),
        ..plain()
    };
    let scheduled = bus
        .schedule(
            "t",
            " { \"a\" : 1.50 } ",
            &options,
            &Schedule::after(MINUTE_MS),
        )
        .await
        .expect("it is scheduled");
    assert_eq!(scheduled.due, START_MS + MINUTE_MS);
    lab.pass(MINUTE_MS - 1).await;
    assert!(bus.topics().is_empty(), "nothing to be seen of it");
    assert_eq!(bus.schedule_counts(), (1, 0));
    lab.pass(1).await;
    let events = read_all(&bus, "t").await;
    assert_eq!(
        events[0].json(),
        format!(
            r##"{{"id":"{}","sid":"s","ts":{},"topic":"t","seq":1,"key":"k","headers":{{"x-a":"1"}},"payload":{{"a":1.50}},"caused_by":["c"],"tags":["#t"]}}"##,
            scheduled.id, scheduled.due
        )
    );
    assert_eq!(bus.schedule_counts(), (0, 1));
    lab.pass(MINUTE_MS).await;
    assert_eq!(published(&bus).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn events_come_in_the_order_in_which_they_are_due() {
    let lab = Lab::new();
    let bus = lab.bus();
    let mut expected = Vec::new();
    for number in 0..1_500u64 {
        let delay_ms = 1 + number * 7_919 % 1_500;
        let scheduled = schedule(&bus, &number.to_string(), &Schedule::after(delay_ms)).await;
        expected.push((scheduled.due, scheduled.id.to_string()));
    }
    expected.sort();
    lab.pass(2_000).await;
    let due = published(&bus)
        .await
        .into_iter()
        .map(|(id, ts, _)| (ts, id));
    assert_eq!(due.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_came_due_while_no_bus_was_there_is_published_at_start_and_says_so() {
    let lab = Lab::new();
    let bus = lab.bus();
    let first = schedule(&bus, "1", &Schedule::after(MINUTE_MS)).await;
    let later = schedule(&bus, "2", &Schedule::after(60 * MINUTE_MS)).await;
    drop(bus);
    lab.clock.advance(10 * MINUTE_MS);
    let bus = lab.bus();
    settle().await;
    let events = read_all(&bus, "t").await;
    assert_eq!(events.len(), 1);
    assert_eq!(*events[0].id(), *first.id.as_str());
    assert_eq!(events[0].ts(), first.due);
    let headers = EventFields::of(&events[0]).headers;
    assert_eq!(headers["x-scheduled-for"], first.due.to_string());
    lab.pass(50 * MINUTE_MS).await;
    let events = read_all(&bus, "t").await;
    assert_eq!(*events[1].id(), *later.id.as_str());
    assert!(EventFields::of(&events[1]).headers.is_empty(), "in time");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_has_ids_of_its_own() {
    let lab = Lab::new();
    let bus = lab.bus();
    let options = PublishOptions {
        id: Some("tick"),
        ..plain()
    };
    let scheduled = bus.schedule("t", "1", &options, &every("1m")).await;
    assert_eq!(scheduled.expect("scheduled").due, START_MS + MINUTE_MS);
    for _ in 0..3 {
        lab.pass(MINUTE_MS).await;
    }
    let ids: Vec<String> = published(&bus)
        .await
        .into_iter()
        .map(|(id, ..)| id)
        .collect();
    let expected = [1, 2, 3].map(|minute| format!("tick@{}", START_MS + minute * MINUTE_MS));
    assert_eq!(ids, expected);
    assert_eq!(bus.schedule_counts(), (1, 3));
    let removed = bus.unschedule("tick").await.expect("it waits");
    assert_eq!(removed.due, START_MS + 4 * MINUTE_MS);
    lab.pass(10 * MINUTE_MS).await;
    assert_eq!(published(&bus).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn of_missed_times_only_the_last_comes_unless_all_are_wanted() {
    for catch_up in [false, true] {
        let lab = Lab::new();
        let bus = lab.bus();
        let repeated = Schedule {
            catch_up,
            ..every("1m")
        };
        schedule(&bus, "1", &repeated).await;
        drop(bus);
        lab.clock.advance(10 * MINUTE_MS + 30_000);
        let bus = lab.bus();
        settle().await;
        let times: Vec<u64> = published(&bus)
            .await
            .into_iter()
            .map(|(_, ts, _)| ts)
            .collect();
        let missed = if catch_up { 1..=10 } else { 10..=10 };
        let expected: Vec<u64> = missed.map(|minute| START_MS + minute * MINUTE_MS).collect();
        assert_eq!(times, expected, "catch_up: {catch_up}");
        lab.pass(30_000).await;
        let last = published(&bus).await.pop().expect("an event");
        assert_eq!(last.1, START_MS + 11 * MINUTE_MS, "and it goes on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_publishes_nothing_twice_and_forgets_nothing() {
    let lab = Lab::new();
    let bus = lab.bus();
    let mut ids = Vec::new();
    for minute in 1..=20 {
        ids.push(
            schedule(&bus, "1", &Schedule::after(minute * MINUTE_MS))
                .await
                .id
                .to_string(),
        );
    }
    let jumps = [5, 0, 9, 3, 12, 11, 12, 0, 20, 1, 25];
    let mut reached = 0;
    for minute in jumps {
        lab.clock.set(START_MS + minute * MINUTE_MS);
        settle().await;
        reached = minute.clamp(reached, 20);
        let found: Vec<String> = published(&bus)
            .await
            .into_iter()
            .map(|(id, ..)| id)
            .collect();
        assert_eq!(found, ids[..reached as usize], "at minute {minute}");
    }
    assert_eq!(bus.schedule_counts(), (0, 20));
}

#[tokio::test(start_paused = true)]
async fn an_id_that_waits_schedules_nothing_and_may_come_again_later() {
    let lab = Lab::new();
    let bus = lab.bus();
    let options = PublishOptions {
        id: Some("once"),
        ..plain()
    };
    let first = bus
        .schedule("t", "1", &options, &Schedule::after(MINUTE_MS))
        .await;
    let first = first.expect("scheduled");
    let again = bus.schedule("t", "1", &options, &Schedule::after(9)).await;
    let again = again.expect("a duplicate");
    assert_eq!((again.due, again.duplicate), (first.due, true));
    for (topic, payload) in [("t", "2"), ("other", "1")] {
        let other = bus
            .schedule(topic, payload, &options, &Schedule::after(9))
            .await;
        assert!(
            matches!(other, Err(PublishError::IdConflict(_))),
            "{other:?}"
        );
    }
    lab.pass(MINUTE_MS).await;
    assert_eq!(published(&bus).await.len(), 1);
    // A retry whose reply was lost comes after the event: the topic holds the id.
    let late = bus.schedule("t", "1", &options, &Schedule::after(0)).await;
    assert!(!late.expect("scheduled").duplicate);
    settle().await;
    assert_eq!(published(&bus).await.len(), 1, "stored once");
    assert_eq!(bus.schedule_counts().0, 0);
    // An event that can never be published does not keep others back.
    bus.schedule("t", "2", &options, &Schedule::after(0))
        .await
        .expect("scheduled");
    schedule(&bus, "3", &Schedule::after(1)).await;
    lab.pass(1).await;
    let payloads: Vec<String> = published(&bus)
        .await
        .into_iter()
        .map(|(.., payload)| payload)
        .collect();
    assert_eq!(payloads, ["1", "3"]);
    assert_eq!(bus.schedule_counts().0, 0);
}

#[tokio::test(start_paused = true)]
async fn two_buses_on_one_store_publish_each_event_once() {
    let lab = Lab::new();
    let (one, other) = (lab.bus(), lab.bus());
    let mut ids = Vec::new();
    for number in 0..300u64 {
        let bus = if number % 2 == 0 { &one } else { &other };
        ids.push(
            schedule(bus, "1", &Schedule::after(number % 10))
                .await
                .id
                .to_string(),
        );
    }
    schedule(&one, "2", &every("1s")).await;
    for _ in 0..4 {
        lab.pass(1_000).await;
    }
    let mut found: Vec<String> = published(&one)
        .await
        .into_iter()
        .filter(|(.., payload)| payload == "1")
        .map(|(id, ..)| id)
        .collect();
    found.sort();
    ids.sort();
    assert_eq!(found, ids);
    assert_eq!(published(&one).await.len(), 304);
    assert_eq!(one.schedule_counts().1 + other.schedule_counts().1, 304);
}

#[tokio::test(start_paused = true)]
async fn removing_races_the_due_time_and_one_of_them_wins() {
    let lab = Lab::new();
    let (bus, other) = (lab.bus(), lab.bus());
    let mut removed = 0;
    for round in 0..50 {
        let scheduled = schedule(&bus, "1", &Schedule::after(5)).await;
        lab.clock.advance(5);
        for _ in 0..round % 5 {
            tokio::task::yield_now().await;
        }
        match other.unschedule(scheduled.id.as_str()).await {
            Ok(found) => {
                assert_eq!(found.id, scheduled.id.as_str());
                removed += 1;
            }
            Err(error) => assert!(
                matches!(error, ScheduleError::UnknownSchedule(_)),
                "{error}"
            ),
        }
        settle().await;
        assert_eq!(published(&bus).await.len() + removed, round + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn schedules_are_listed_in_pages() {
    let lab = Lab::new();
    let bus = lab.bus();
    assert_eq!(
        bus.schedules(None, None, 10)
            .await
            .expect("a page")
            .schedules,
        []
    );
    for number in 0..25 {
        let id = format!("id-{number:02}");
        let options = PublishOptions {
            id: Some(&id),
            key: Some("k"),
            ..plain()
        };
        let topic = if number % 5 == 0 { "u" } else { "t" };
        bus.schedule(topic, "1", &options, &Schedule::after(MINUTE_MS))
            .await
            .expect("scheduled");
    }
    bus.unschedule("id-03").await.expect("it waits");
    let (mut ids, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = bus
            .schedules(None, after.as_deref(), 7)
            .await
            .expect("a page");
        ids.extend(page.schedules.into_iter().map(|found| found.id));
        pages += 1;
        assert!(pages < 10);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let expected: Vec<String> = (0..25)
        .filter(|number| *number != 3)
        .map(|number| format!("id-{number:02}"))
        .collect();
    assert_eq!(ids, expected);
    let of_u = bus
        .schedules(Some("u"), None, 100)
        .await
        .expect("a page")
        .schedules;
    assert_eq!(of_u.len(), 5);
    assert_eq!(
        (of_u[0].key.as_deref(), of_u[0].payload.as_str()),
        (Some("k"), "1")
    );
    let one = bus.pending_schedule("id-07").await.expect("it waits");
    assert_eq!((one.topic.as_str(), one.due), ("t", START_MS + MINUTE_MS));
    for gone in ["id-03", "nope"] {
        let error = bus.pending_schedule(gone).await.unwrap_err();
        assert!(matches!(error, ScheduleError::UnknownSchedule(_)));
        assert!(!error.is_retryable());
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_that_waits_has_a_limit() {
    let lab = Lab::new();
    let options = BusOptions {
        clock: lab.clock.clone(),
        max_schedules: 2,
        ..BusOptions::default()
    };
    let bus = Bus::open(lab.store.clone(), options).expect("a bus");
    for _ in 0..2 {
        schedule(&bus, "1", &Schedule::after(5)).await;
        settle().await;
    }
    let refused = bus.schedule("t", "1", &plain(), &Schedule::after(5)).await;
    assert!(
        matches!(refused, Err(PublishError::LimitReached(limit)) if limit.name == "max_schedules")
    );
    lab.pass(5).await;
    schedule(&bus, "1", &Schedule::after(5)).await;
}

#[tokio::test(start_paused = true)]
async fn the_topic_of_schedules_is_nobody_elses() {
    let lab = Lab::new();
    let bus = lab.bus();
    schedule(&bus, "1", &Schedule::after(MINUTE_MS)).await;
    assert!(bus.store().topic("$schedules").is_some());
    assert!(bus.topics().is_empty());
    let refused = bus.publish("$schedules", &1, &plain()).await;
    assert!(
        matches!(refused, Err(PublishError::InvalidTopic(_))),
        "{refused:?}"
    );
    assert!(bus.subscribe("$schedules", "g", earliest()).await.is_err());
    let everything = bus.subscribe("**", "g", earliest()).await.expect("joined");
    bus.publish("seen", &1, &plain()).await.expect("stored");
    assert_eq!(next(&everything).await.event.topic(), "seen");
    assert!(Pattern::for_topics("$schedules").is_err());
    bus.close().await.expect("closed");
    let closed = bus.schedule("t", "1", &plain(), &Schedule::after(5)).await;
    assert!(matches!(closed, Err(PublishError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn options_that_are_not_for_scheduled_events_are_refused() {
    let lab = Lab::new();
    let bus = lab.bus();
    for options in [
        PublishOptions {
            ts: Some(1),
            ..plain()
        },
        PublishOptions {
            expect_seq: Some(1),
            ..plain()
        },
        PublishOptions {
            key: Some("k"),
            expect_key_seq: Some(1),
            ..plain()
        },
    ] {
        let refused = bus.schedule("t", "1", &options, &Schedule::after(1)).await;
        assert!(
            matches!(refused, Err(PublishError::InvalidField(_))),
            "{refused:?}"
        );
    }
    let refused = bus.schedule("t", "{", &plain(), &Schedule::after(1)).await;
    assert!(
        matches!(refused, Err(PublishError::InvalidJson(_))),
        "{refused:?}"
    );
    let refused = bus
        .schedule("a b", "1", &plain(), &Schedule::after(1))
        .await;
    assert!(
        matches!(refused, Err(PublishError::InvalidTopic(_))),
        "{refused:?}"
    );
    assert!(bus.store().topics().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_the_store_does_not_take_does_not_hold_up_the_others() {
    let clock = Arc::new(ManualClock::at(START_MS));
    let store = Arc::new(MemoryStore::with_limit(clock.clone(), 200_000));
    let lab = Lab { clock, store };
    let bus = lab.bus();
    let huge = format!("\"{}\"", "x".repeat(120_000));
    for (topic, payload) in [("first", "1"), ("huge", &huge), ("last", "2")] {
        let options = PublishOptions::default();
        let scheduled = bus
            .schedule(topic, payload, &options, &Schedule::after(MINUTE_MS))
            .await;
        scheduled.expect("scheduled");
    }
    lab.pass(MINUTE_MS).await;
    assert_eq!(read_all(&bus, "first").await.len(), 1);
    assert_eq!(read_all(&bus, "last").await.len(), 1);
    assert_eq!(bus.schedule_counts(), (1, 2), "it waits for room");
    bus.schedule(
        "later",
        "3",
        &PublishOptions::default(),
        &Schedule::after(1),
    )
    .await
    .expect("scheduled");
    lab.pass(MINUTE_MS).await;
    assert_eq!(read_all(&bus, "later").await.len(), 1);
    assert_eq!(bus.schedule_counts(), (1, 3), "it is not given up");
}
