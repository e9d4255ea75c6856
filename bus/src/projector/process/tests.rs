//! What heartbeats do to processes, as a plain function of state, event and time.

use super::*;
use crate::options::Limits;
use prombus_store::memory::MemoryStore;
use prombus_store::{
    Batch, Change, Draft, IfExists, ManualClock, ReadFrom, ReadLimit, Store, TopicOptions,
};
use serde_json::{Value, json};

const NOW_MS: u64 = 1_000_000;

/// An event of `heartbeat.received`.
async fn event(payload: &str, ts: u64) -> StoredEvent {
    let store = MemoryStore::new(Arc::new(ManualClock::at(NOW_MS)));
    let topic: Arc<str> = "heartbeat.received".into();
    let mut batch = Batch::new();
    batch.change(Change::PutTopic {
        topic: topic.clone(),
        options: TopicOptions::default(),
        if_exists: IfExists::Replace,
    });
    let draft = Draft {
        payload,
        ts: Some(ts),
        ..Draft::default()
    };
    batch.publish(&topic, &draft);
    store.commit(batch).await.expect("stored");
    let all = ReadLimit {
        events: 1,
        bytes: 1,
    };
    let page = store
        .read(&topic, ReadFrom::Seq(1), all)
        .await
        .expect("read");
    page.events[0].clone()
}

async fn beat(pid: u64, ts: u64) -> StoredEvent {
    let payload = json!({"pid": pid, "name": "api", "host": "web", "cpu_pct": 1.5, "mem_mb": 64});
    event(&payload.to_string(), ts).await
}

fn emitter() -> Emitter {
    Emitter::new(&"process.state".into(), Limits::default(), None, None)
}

fn payloads(emit: &Emitter) -> Vec<Value> {
    let events = emit.batch.events();
    let parsed = events.map(|event| serde_json::from_slice(event.payload()).expect("JSON"));
    parsed.collect()
}

/// Folds one event and returns what it emitted and whether it was refused.
fn fold(state: &mut Processes, event: &StoredEvent, now_ms: u64) -> (Vec<Value>, u64) {
    let mut emit = emitter();
    emit.begin(event);
    ProcessProjector::default().fold(state, event, now_ms, &mut emit);
    (payloads(&emit), emit.rejected)
}

fn tick(state: &mut Processes, now_ms: u64) -> Vec<Value> {
    let mut emit = emitter();
    ProcessProjector::default().tick(state, now_ms, &mut emit);
    payloads(&emit)
}

#[tokio::test]
async fn a_heartbeat_becomes_a_state_with_the_fields_of_the_contract() {
    let mut state = Processes::default();
    let payload =
        r#"{"pid":7,"name":"api","host":"web","cpu_pct":12.5,"mem_mb":90,"sid":"s1","more":[1]}"#;
    let (emitted, rejected) = fold(&mut state, &event(payload, NOW_MS).await, NOW_MS);
    let expected = json!({
        "processId": "web:api:7", "name": "api", "host": "web", "pid": 7, "sid": "s1",
        "cpu_pct": 12.5, "mem_mb": 90, "last_seen_ts": NOW_MS, "status": "alive",
    });
    assert_eq!((emitted, rejected), (vec![expected], 0));
    let (emitted, _) = fold(&mut state, &beat(8, NOW_MS).await, NOW_MS);
    assert!(
        emitted[0].get("sid").is_none(),
        "what is absent is left out"
    );
}

#[tokio::test]
async fn silence_makes_stale_once_and_a_beat_alive_again() {
    let mut state = Processes::default();
    fold(&mut state, &beat(7, NOW_MS).await, NOW_MS);
    assert!(tick(&mut state, NOW_MS + STALE_AFTER_MS - 1).is_empty());
    let stale = tick(&mut state, NOW_MS + STALE_AFTER_MS);
    assert_eq!(stale.len(), 1);
    assert_eq!(stale[0]["status"], "stale");
    assert_eq!(stale[0]["last_seen_ts"], NOW_MS);
    assert!(tick(&mut state, NOW_MS + 100_000).is_empty());
    let later_ms = NOW_MS + 100_000;
    let (alive, _) = fold(&mut state, &beat(7, later_ms).await, later_ms);
    assert_eq!(alive[0]["status"], "alive");
    assert_eq!(tick(&mut state, later_ms + STALE_AFTER_MS).len(), 1);
}

#[tokio::test]
async fn a_time_in_the_future_keeps_nobody_alive_and_an_old_one_overwrites_nothing() {
    let mut state = Processes::default();
    let far_ms = NOW_MS * 1_000;
    let (emitted, _) = fold(&mut state, &beat(7, far_ms).await, NOW_MS);
    assert_eq!(emitted[0]["last_seen_ts"], NOW_MS);
    let (emitted, _) = fold(&mut state, &beat(7, NOW_MS + 1).await, NOW_MS + 1);
    assert_eq!(emitted.len(), 1, "a true time counts behind it");
    let (emitted, rejected) = fold(&mut state, &beat(7, NOW_MS).await, NOW_MS + 2);
    assert_eq!((emitted.len(), rejected), (0, 1), "it is late");
    assert_eq!(tick(&mut state, NOW_MS + 1 + STALE_AFTER_MS).len(), 1);
    // The clock goes back an hour; the bus's times of a topic do not.
    let (emitted, _) = fold(&mut state, &beat(7, NOW_MS + 1).await, NOW_MS - 500_000);
    assert_eq!(emitted[0]["last_seen_ts"], NOW_MS + 1);
    assert_eq!(emitted[0]["status"], "alive");
}

#[tokio::test]
async fn what_is_no_heartbeat_is_refused_and_leaves_no_trace() {
    let long = "x".repeat(300);
    let good = json!({"pid": 7, "name": "api", "host": "web", "cpu_pct": 1, "mem_mb": 2});
    let mut bad: Vec<Value> = vec![json!(null), json!(1), json!([]), json!({}), json!("x")];
    for (field, value) in [
        ("pid", json!(-1)),
        ("pid", json!("7")),
        ("pid", json!(1.5)),
        ("name", json!("")),
        ("name", json!(long)),
        ("host", json!(5)),
        ("host", json!(null)),
        ("cpu_pct", json!("1")),
        ("mem_mb", json!(null)),
        ("sid", json!(4)),
        ("sid", json!(long)),
    ] {
        let mut changed = good.clone();
        changed[field] = value;
        bad.push(changed);
    }
    for field in ["pid", "name", "host", "cpu_pct", "mem_mb"] {
        let mut changed = good.clone();
        changed.as_object_mut().expect("an object").remove(field);
        bad.push(changed);
    }
    let mut state = Processes::default();
    for payload in bad {
        let event = event(&payload.to_string(), NOW_MS).await;
        let (emitted, rejected) = fold(&mut state, &event, NOW_MS);
        assert_eq!((emitted.len(), rejected), (0, 1), "{payload}");
    }
    assert!(state.is_empty());
    let (emitted, _) = fold(&mut state, &event(&good.to_string(), NOW_MS).await, NOW_MS);
    assert_eq!(emitted.len(), 1);
}

#[tokio::test]
async fn beyond_the_limit_the_longest_silent_are_forgotten_stale_ones_first() {
    let projector = ProcessProjector { max_processes: 4 };
    let mut state = Processes::default();
    let add = async |state: &mut Processes, pid, ts| {
        let event = beat(pid, ts).await;
        let mut emit = emitter();
        projector.fold(state, &event, NOW_MS, &mut emit);
        assert_eq!(emit.emitted, 1);
    };
    add(&mut state, 1, NOW_MS - 20_000).await;
    assert_eq!(tick(&mut state, NOW_MS).len(), 1);
    add(&mut state, 2, NOW_MS - 30_000).await;
    add(&mut state, 3, NOW_MS - 2).await;
    add(&mut state, 4, NOW_MS - 1).await;
    add(&mut state, 5, NOW_MS).await;
    assert!(state.get("web:api:1").is_none(), "the stale one went");
    add(&mut state, 6, NOW_MS).await;
    assert!(state.get("web:api:2").is_none(), "then the longest silent");
    add(&mut state, 6, NOW_MS).await;
    assert_eq!(state.len(), 4, "one that is known needs no room");
}

#[tokio::test]
async fn a_tick_with_much_to_say_leaves_the_rest_for_later() {
    let mut state = Processes::default();
    let one = beat(1, NOW_MS).await;
    for pid in 0..2_500 {
        let process = ProcessState {
            process_id: format!("web:api:{pid}"),
            pid,
            ..Heartbeat::read(one.payload())
                .expect("a beat")
                .into_state(0)
        };
        let key: Arc<str> = process.process_id.as_str().into();
        state.insert(key, process, "x".into(), MAX_PROCESSES);
    }
    let mut stale = 0;
    for _ in 0..3 {
        let emitted = tick(&mut state, NOW_MS).len();
        assert!(emitted > 0 && emitted <= 1_024, "{emitted}");
        stale += emitted;
    }
    assert_eq!(stale, 2_500);
    assert!(tick(&mut state, NOW_MS).is_empty());
}
