//! A run: one life of the bus after the other on the same disk, each in a runtime of its own.

use crate::calm;
use crate::clock::SimClock;
use crate::members::Member;
use crate::model::Model;
use crate::operations::Operation;
use crate::spec::{SPECS, WINDOW};
use crate::store::{Disk, Kind};
use fastrand::Rng;
use prombus::{Backoff, Bus, BusOptions, TopicConfig};
use prombus_store::LockExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::JoinSet;

/// The most lives of a run.
const MAX_LIVES: usize = 3;

/// In every so many runs the wall clock steps: there it hides what else goes wrong.
const STEPPING_RUNS: u64 = 4;

/// What came of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Everything that happened, in order.
    pub trace: String,
    /// The rules that were broken.
    pub violations: Vec<String>,
}

/// What the tasks of one life share.
pub(crate) struct World {
    pub(crate) bus: Bus,
    pub(crate) clock: Arc<SimClock>,
    model: Arc<Mutex<Model>>,
    /// Members stay and acknowledge everything.
    calm: AtomicBool,
    /// Events of one key fail all the same.
    poisoned: AtomicBool,
    closing: AtomicBool,
}

/// How a life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Calm,
    Close,
    Crash,
}

/// Runs a seed to its end.
pub fn run(seed: u64, kind: Kind) -> Outcome {
    let mut random = Rng::with_seed(seed);
    let clock = Arc::new(SimClock::default());
    let model = Arc::new(Mutex::new(Model::default()));
    let mut disk = Disk::new(kind, &clock);
    let steps_clock = seed.is_multiple_of(STEPPING_RUNS);
    let lives = random.usize(1..=MAX_LIVES);
    for life in 1..=lives {
        let end = if life == lives {
            End::Calm
        } else if random.bool() {
            End::Close
        } else {
            End::Crash
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let lived = match runtime {
            Ok(runtime) => {
                let life = live(&disk, &clock, &model, &mut random, (end, steps_clock));
                let lived = runtime.block_on(life);
                // Without a close, the tasks stop where they are.
                drop(runtime);
                lived
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = lived {
            lock(&model).violations.push(why);
            break;
        }
        if end == End::Crash {
            disk.crash(random.u64(..));
        }
    }
    let mut model = lock(&model);
    Outcome {
        trace: std::mem::take(&mut model.trace),
        violations: std::mem::take(&mut model.violations),
    }
}

async fn live(
    disk: &Disk,
    clock: &Arc<SimClock>,
    model: &Arc<Mutex<Model>>,
    random: &mut Rng,
    (end, steps_clock): (End, bool),
) -> Result<(), String> {
    clock.begin_life();
    let store = disk.open(clock, random.u64(..))?;
    let options = BusOptions {
        clock: clock.clone(),
        group_window: WINDOW,
        ack_flush_ms: random.u64(1..=100),
        pattern_topics: random.usize(1..=4),
        dormant_after_ms: random.u64(0..3_000),
        backoff: Backoff {
            first_ms: 20,
            longest_ms: 1_000,
        },
        topic_defaults: vec![
            (
                "a.x".to_owned(),
                TopicConfig {
                    max_events: Some(400),
                    ..TopicConfig::default()
                },
            ),
            (
                "b.3".to_owned(),
                TopicConfig {
                    compaction: true,
                    ..TopicConfig::default()
                },
            ),
        ],
        ..BusOptions::default()
    };
    let bus = Bus::open(Arc::new(store), options).map_err(|error| error.to_string())?;
    let world = Arc::new(World {
        bus,
        clock: clock.clone(),
        model: model.clone(),
        calm: AtomicBool::new(false),
        poisoned: AtomicBool::new(false),
        closing: AtomicBool::new(false),
    });
    world.note(&format!("a life begins that ends in {end:?}"));
    for spec in &SPECS {
        for number in 0..spec.members {
            let member = Member {
                world: world.clone(),
                spec,
                name: format!("{}-{number}", spec.group),
                random: random.fork(),
                subscribed: (0, 0),
            };
            tokio::spawn(member.run());
        }
    }
    let mut under_way = JoinSet::new();
    for _ in 0..random.usize(20..90) {
        under_way.spawn(Operation::draw(random, steps_clock).run(world.clone()));
        pause(random).await;
        while under_way.try_join_next().is_some() {}
    }
    match end {
        End::Calm => calm::check(&world, under_way, random).await,
        End::Close => {
            world.closing.store(true, Ordering::SeqCst);
            world.model().restarting(world.now_ms());
            // The store's own answer says whether that worked, and the next life shows it.
            let _ = world.bus.close().await;
        }
        End::Crash => world.model().restarting(world.now_ms()),
    }
    clock.end_life();
    Ok(())
}

async fn pause(random: &mut Rng) {
    let ms = match random.u8(0..100) {
        0..40 => return,
        40..75 => random.u64(0..4),
        75..96 => random.u64(0..60),
        _ => random.u64(0..2_000),
    };
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

impl World {
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.elapsed_ms()
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        lock(&self.model)
    }

    pub(crate) fn note(&self, line: &str) {
        let now_ms = self.now_ms();
        self.model().note(now_ms, line);
    }

    pub(crate) fn violated(&self, rule: &str) {
        let now_ms = self.now_ms();
        self.model().violated(now_ms, rule);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::SeqCst)
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::SeqCst)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub(crate) fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    pub(crate) fn poison(&self, poisoned: bool) {
        self.poisoned.store(poisoned, Ordering::SeqCst);
    }
}

fn lock(model: &Mutex<Model>) -> MutexGuard<'_, Model> {
    model.guard()
}
