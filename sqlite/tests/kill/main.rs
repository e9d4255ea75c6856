//! Real processes that project and drain are killed with SIGKILL, at steps that a seed decides: in the middle of
//! statements, before commits, around reads and publishes, inside handlers. Whatever was reached, the next process
//! goes on, and in the end the tables equal a plain fold over the log: nothing is missing and nothing is there twice.
#![cfg(test)]

mod changelog;
mod handler;
mod outbox;
mod steps;

use prombus::{Bus, BusOptions, PublishOptions, ReadFrom, ReadLimit, StoredEvent};
use prombus_log::FileStore;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// How many seeds each kind of work is run with, and how often each is killed at most.
const SEEDS: u64 = 10;
const KILLS: u64 = 5;
/// Each of the first so many steps is died at once.
const FIRST_STEPS: u64 = 40;
const TOPIC: &str = "accounts.state";
/// Tell the test binary that it is the process to be killed: its work, folder, round, and step to die at.
const WORK: &str = "PROMBUS_KILL_WORK";
const FOLDER: &str = "PROMBUS_KILL_FOLDER";
const ROUND: &str = "PROMBUS_KILL_ROUND";
const STEP: &str = "PROMBUS_KILL_STEP";

/// What a process does, and how its result is judged.
struct Work {
    name: &'static str,
    /// A kill comes within so many steps, about as many as one run takes.
    steps: u64,
    /// Gives it more to do, in this process.
    prepare: fn(folder: &Path, random: &mut fastrand::Rng),
    /// Does everything there is to do, in a process that may be killed.
    run: fn(folder: &Path, round: u64),
    /// Compares what is there with what has to be.
    judge: fn(folder: &Path, seed: u64),
}

const WORKS: [Work; 3] = [changelog::WORK, handler::WORK, outbox::WORK];

/// Not a test of its own: it is the process that is killed.
#[test]
fn kill_me() {
    let Ok(name) = std::env::var(WORK) else {
        return;
    };
    let folder = std::env::var_os(FOLDER).expect("a folder");
    let work = WORKS
        .iter()
        .find(|work| work.name == name)
        .expect("a kind of work");
    (work.run)(Path::new(&folder), number(ROUND).expect("a round"));
}

#[test]
fn a_changelog_that_is_killed_is_a_fold() {
    kill_over_and_over(&changelog::WORK);
}

#[test]
fn a_handler_that_is_killed_is_a_fold() {
    kill_over_and_over(&handler::WORK);
}

#[test]
fn an_outbox_whose_drainers_are_killed_is_published_once() {
    kill_over_and_over(&outbox::WORK);
}

#[test]
fn a_changelog_survives_a_kill_at_each_of_the_first_steps() {
    kill_step_by_step(&changelog::WORK);
}

#[test]
fn a_handler_survives_a_kill_at_each_of_the_first_steps() {
    kill_step_by_step(&handler::WORK);
}

#[test]
fn an_outbox_survives_a_kill_at_each_of_the_first_steps() {
    kill_step_by_step(&outbox::WORK);
}

/// Kills at steps that seeds decide.
fn kill_over_and_over(work: &Work) {
    let seeds = match number("PROMBUS_SEED") {
        Some(only) => only..only + 1,
        None => 0..number("PROMBUS_SEEDS").unwrap_or(SEEDS),
    };
    let (mut runs, mut kills) = (0, 0);
    for seed in seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let steps: Vec<u64> = (0..KILLS).map(|_| random.u64(1..=work.steps)).collect();
        kills += kill_at(work, &steps, seed);
        runs += KILLS;
    }
    // A few runs come to their end before the step at which they would die.
    let is_single = runs == KILLS;
    assert!(
        is_single || kills * 3 >= runs * 2,
        "{kills} of {runs} were killed, so there are fewer steps than was thought"
    );
}

/// Kills at each step from the first on.
fn kill_step_by_step(work: &Work) {
    let steps: Vec<u64> = (1..=FIRST_STEPS).collect();
    assert_eq!(kill_at(work, &steps, 1), FIRST_STEPS, "each of them died");
}

/// Runs a process for each of these steps, one after the other on the same files and with more to do each time, and
/// one that nobody kills; how many were killed.
fn kill_at(work: &Work, steps: &[u64], seed: u64) -> u64 {
    // One at a time, where the tests are threads of one process: a process that another thread is just starting holds
    // this one's files for a moment, the lock of the log among them.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kills = 0;
    for (round, &step) in (0..).zip(steps) {
        (work.prepare)(folder.path(), &mut random);
        kills += u64::from(!finishes(work, folder.path(), round, step));
    }
    let last = steps.len() as u64;
    assert!(
        finishes(work, folder.path(), last, u64::MAX),
        "seed {seed}: nobody killed it, and it did not end well"
    );
    (work.judge)(folder.path(), seed);
    kills
}

/// Runs the work in a process of its own; whether it came to its end before the step at which it dies.
fn finishes(work: &Work, folder: &Path, round: u64, step: u64) -> bool {
    let this = std::env::current_exe().expect("this program");
    let output = Command::new(this)
        .args(["--exact", "kill_me", "--nocapture"])
        .env(WORK, work.name)
        .env(FOLDER, folder)
        .env(ROUND, round.to_string())
        .env(STEP, step.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("a process");
    let was_killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
    assert!(
        output.status.success() || was_killed,
        "{}: it failed by itself: {}",
        work.name,
        String::from_utf8_lossy(&output.stderr)
    );
    !was_killed
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// Runs something with the bus of this folder, and closes it.
fn with_bus<T>(folder: &Path, work: impl AsyncFnOnce(&Bus) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let (store, report) = FileStore::open(&folder.join("log")).expect("a log");
        assert_eq!(report.damage, Vec::<String>::new());
        let bus = Bus::open(Arc::new(store), BusOptions::default()).expect("a bus");
        let done = work(&bus).await;
        bus.close().await.expect("a clean stop");
        done
    })
}

/// Publishes changes of a few keys, some of them tombstones, with versions that also fall.
fn publish_changes(folder: &Path, random: &mut fastrand::Rng) {
    let changes: Vec<(String, String)> = (0..random.u32(10..60))
        .map(|_| {
            let key = format!("account-{}", random.u32(0..9));
            let (version, amount) = (random.u32(0..50), random.i32(-100..100));
            let payload = match random.u32(0..6) {
                0 => "null".to_owned(),
                _ => format!(r#"{{"version":{version},"amount":{amount}}}"#),
            };
            (key, payload)
        })
        .collect();
    with_bus(folder, async |bus| {
        let mut batch = bus.batch();
        for (key, payload) in &changes {
            let options = PublishOptions {
                key: Some(key),
                ..PublishOptions::default()
            };
            batch.add(TOPIC, payload, &options);
        }
        for published in bus.publish_batch(batch).await {
            published.expect("published");
        }
    });
}

/// The whole topic.
fn log(folder: &Path) -> Vec<StoredEvent> {
    let limit = ReadLimit {
        events: 100_000,
        bytes: 1 << 30,
    };
    with_bus(folder, async |bus| {
        let page = bus
            .store()
            .read(&TOPIC.into(), ReadFrom::Seq(1), limit)
            .await;
        page.expect("the topic").events
    })
}
