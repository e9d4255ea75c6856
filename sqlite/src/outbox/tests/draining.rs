//! Claims, leases, failures, order, and several drainers at once.

use super::*;
use crate::outbox::claims::Claims;
use prombus::Backoff;
use std::collections::BTreeSet;

const BACKOFF: Backoff = Backoff {
    first_ms: 1_000,
    longest_ms: 60_000,
};

fn claims(path: &Path, worker: &str) -> Claims {
    Claims::new(outbox(path), worker, 30_000, BACKOFF).expect("claims")
}

fn payloads(rows: &[OutboxRow]) -> Vec<&str> {
    rows.iter().map(|row| row.payload.as_str()).collect()
}

#[test]
fn a_claimed_row_is_nobody_elses_until_the_lease_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let (mut first, mut second) = (claims(&path, "one"), claims(&path, "two"));
    for payload in ["1", "2", "3"] {
        add(first.connection(), payload, None);
    }
    let (held, _) = first.claim(0, 2, 1 << 20).expect("rows");
    assert_eq!(payloads(&held), ["1", "2"]);
    assert_eq!(
        payloads(&second.claim(29_999, 9, 1 << 20).expect("rows").0),
        ["3"]
    );
    let (taken_over, _) = second.claim(30_000, 9, 1 << 20).expect("rows");
    assert_eq!(payloads(&taken_over), ["1", "2"]);
    assert_eq!(taken_over[0].attempts, 2);

    // The first one comes late: what it published is published, what failed is the other's business now.
    let place = SentAt {
        seq: 1,
        duplicate: false,
    };
    let late = [
        Ok(place),
        Err(PublishFailure::new("publish_failed", "disk")),
    ];
    first.settle(30_001, &held, &late).expect("settled");
    let id_of = |row: usize| held[row].id.as_str();
    assert_eq!(state(first.connection(), id_of(0)).0, "sent");
    assert_eq!(state(first.connection(), id_of(1)).0, "claimed");
}

#[test]
fn bytes_end_a_claim_but_one_row_always_fits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut claims = claims(&folder.path().join("a.db"), "w");
    let large = format!("\"{}\"", "x".repeat(100));
    for _ in 0..4 {
        add(claims.connection(), &large, None);
    }
    assert_eq!(claims.claim(0, 9, 1).expect("rows").0.len(), 1);
    assert_eq!(claims.claim(0, 9, 150).expect("rows").0.len(), 2);
    assert_eq!(claims.claim(0, 9, 1 << 20).expect("rows").0.len(), 1);
}

#[test]
fn rows_of_a_key_wait_for_the_earlier_ones_and_others_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let (mut first, mut second) = (claims(&path, "one"), claims(&path, "two"));
    for (payload, key) in [("1", "a"), ("2", "b"), ("3", "a"), ("4", "c"), ("5", "a")] {
        add(first.connection(), payload, Some(key));
    }
    let (held, _) = first.claim(0, 1, 1 << 20).expect("rows");
    assert_eq!(payloads(&held), ["1"]);
    let (others, _) = second.claim(0, 9, 1 << 20).expect("rows");
    assert_eq!(payloads(&others), ["2", "4"], "a is held by the other");
    let failed = [Err(PublishFailure::new("rate_limited", "slowly"))];
    first.settle(0, &held, &failed).expect("settled");
    let (none, _) = second.claim(999, 9, 1 << 20).expect("rows");
    assert!(none.is_empty(), "a waits for its first row");
    let (all, _) = second.claim(1_000, 9, 1 << 20).expect("rows");
    assert_eq!(payloads(&all), ["1", "3", "5"]);
}

#[tokio::test]
async fn failing_rows_back_off_and_do_not_hold_up_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let connection = outbox(&path);
    let bad = add(&connection, "1", None);
    let ill = add(&connection, "2", None);
    add(&connection, "3", None);
    let picky = Picky::default();
    picky.fail("1", "too_large");
    picky.fail("2", "publish_failed");
    let clock = Arc::new(ManualClock::at(0));
    let mut drainer = drainer(&path, "w", &clock);
    let first = drainer.drain(&picky).await.expect("drained");
    assert_eq!((first.sent, first.retried, first.failed), (1, 1, 1));
    let (found, attempts, error) = state(&connection, &bad);
    assert_eq!((found.as_str(), attempts), ("failed", 1));
    assert!(error.is_some_and(|error| error.starts_with("too_large")));
    for (attempt, wait_ms) in (2..).zip([1_000, 2_000, 4_000]) {
        clock.advance(wait_ms - 1);
        assert_eq!(
            drainer.drain(&picky).await.expect("drained"),
            Drained::default()
        );
        clock.advance(1);
        assert_eq!(drainer.drain(&picky).await.expect("drained").retried, 1);
        assert_eq!(state(&connection, &ill).1, attempt);
    }
    picky.relent();
    clock.advance(60_000);
    assert_eq!(drainer.drain(&picky).await.expect("drained").sent, 1);
    assert_eq!(picky.taken(), ["3", "2"]);
}

#[tokio::test]
async fn a_crash_between_publish_and_mark_does_not_double() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let bus = bus();
    let mut crashed = claims(&path, "crashed");
    add(crashed.connection(), "1", Some("a"));
    add(crashed.connection(), "2", Some("a"));
    let (rows, _) = crashed.claim(0, 1, 1 << 20).expect("rows");
    Publish::publish(&bus, &rows).await;
    drop(crashed);
    let clock = Arc::new(ManualClock::at(30_000));
    let drained = drainer(&path, "next", &clock)
        .drain(&bus)
        .await
        .expect("drained");
    assert_eq!((drained.sent, drained.duplicates), (2, 1));
    let stored = stored(&bus).await;
    let payloads: Vec<&str> = stored.iter().map(|(_, payload)| payload.as_str()).collect();
    assert_eq!(payloads, ["1", "2"]);
}

/// Passes rows on to the bus, and counts how often each was handed over.
struct Counting {
    bus: Bus,
    handed: Mutex<BTreeMap<String, u32>>,
}

impl Publish for Counting {
    async fn publish<P: Sync>(&self, rows: &[Row<P>]) -> Vec<Result<SentAt, PublishFailure>> {
        for row in rows {
            *self
                .handed
                .lock()
                .expect("a lock")
                .entry(row.id.clone())
                .or_default() += 1;
        }
        tokio::task::yield_now().await;
        Publish::publish(&self.bus, rows).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_drainers_hand_every_row_over_once_and_keep_the_order_of_keys() {
    const ROWS: u64 = 600;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let connection = outbox(&path);
    for number in 0..ROWS {
        let key = (!number.is_multiple_of(5)).then(|| format!("k{}", number % 7));
        add(&connection, &number.to_string(), key.as_deref());
    }
    let counting = Arc::new(Counting {
        bus: bus(),
        handed: Mutex::default(),
    });
    let clock = Arc::new(ManualClock::at(0));
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let options = DrainerOptions {
                batch_rows: 7,
                ..DrainerOptions::new(format!("w{worker}"))
            };
            let connection = outbox(&path);
            let drainer = Outbox::drainer(connection, options, clock.clone()).expect("a drainer");
            let (mut drainer, counting) = (drainer, counting.clone());
            tokio::spawn(async move {
                // Nothing may be due because others hold the earlier rows of a key.
                for _ in 0..10_000 {
                    drainer.drain(&*counting).await.expect("drained");
                    let counts = drainer.counts().await.expect("counts");
                    if counts.pending + counts.claimed == 0 {
                        return drainer.total();
                    }
                }
                panic!("it does not end");
            })
        })
        .collect();
    let mut sent = 0;
    for worker in workers {
        sent += worker.await.expect("a worker").sent;
    }
    assert_eq!(sent, ROWS);
    let handed = counting.handed.lock().expect("a lock").clone();
    assert!(handed.values().all(|&times| times == 1), "{handed:?}");
    let stored = stored(&counting.bus).await;
    let ids: BTreeSet<&String> = stored.iter().map(|(id, _)| id).collect();
    assert_eq!((stored.len() as u64, ids.len() as u64), (ROWS, ROWS));
    let mut last_of_key = BTreeMap::new();
    for (_, payload) in &stored {
        let number: u64 = payload.parse().expect("a number");
        if !number.is_multiple_of(5) {
            let before = last_of_key.insert(number % 7, number);
            assert!(before < Some(number), "{before:?} came before {number}");
        }
    }
}

/// Never answers.
struct Silent;

impl Publish for Silent {
    async fn publish<P: Sync>(&self, _: &[Row<P>]) -> Vec<Result<SentAt, PublishFailure>> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_waited_for_as_long_as_the_lease() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let id = add(&outbox(&path), "1", None);
    let clock = Arc::new(ManualClock::at(0));
    let drained = drainer(&path, "w", &clock)
        .drain(&Silent)
        .await
        .expect("drained");
    assert_eq!(drained.retried, 1);
    let (found, _, error) = state(&outbox(&path), &id);
    assert_eq!(found, "pending");
    assert!(error.is_some_and(|error| error.starts_with("timeout")));
}

#[tokio::test(start_paused = true)]
async fn a_running_drainer_finds_what_comes_later_and_forgets_what_is_long_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let connection = outbox(&path);
    let clock = Arc::new(ManualClock::at(100_000));
    let picky = Arc::new(Picky::default());
    let mut drainer = drainer(&path, "w", &clock);
    let publisher = picky.clone();
    let running = tokio::spawn(async move { drainer.run(&*publisher).await });
    for round in 0..3_usize {
        add(&connection, &round.to_string(), None);
        for _ in 0..100 {
            if picky.taken().len() > round {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(picky.taken().len(), round + 1);
    }
    clock.advance(25 * 60 * 60 * 1_000);
    let mut left = 1;
    for _ in 0..100 {
        let counts = Outbox::counts(&connection).expect("counts");
        left = counts.pending + counts.claimed + counts.sent + counts.failed;
        if left == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(left, 0, "what was sent a day ago is gone");
    running.abort();
}
