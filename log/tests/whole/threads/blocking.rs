//! What may keep a publisher waiting: not a rewrite, however long it takes; a backlog of full segments only as long as
//! a piece of one takes to seal; and nobody writes for the others without end.

use super::file_hook::{Hook, HookedFiles};
use crate::plan::{Plan, PlannedEvent, answer_of};
use prombus_log::fault::FaultFiles;
use prombus_log::{Commit, Files, Log, LogOptions};
use prombus_store::{Durability, TopicOptions};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::thread::ThreadId;
use std::time::Duration;

/// Far longer than anything here takes; whoever waits so long waits in vain.
const IN_VAIN: Duration = Duration::from_secs(20);
const SEGMENT_BYTES: u64 = 20_000;
const MAX_UNSEALED: usize = 2;

/// Something that a test opens once.
#[derive(Default)]
struct Latch {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Latch {
    fn open(&self) {
        *self.is_open.lock().expect("no one panicked") = true;
        self.opened.notify_all();
    }

    /// False if it was in vain.
    fn wait(&self) -> bool {
        let is_open = self.is_open.lock().expect("no one panicked");
        let waited = self
            .opened
            .wait_timeout_while(is_open, IN_VAIN, |open| !*open);
        *waited.expect("no one panicked").0
    }
}

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: SEGMENT_BYTES,
        max_unsealed_segments: MAX_UNSEALED,
        maintain_interval_ms: 1,
        ..LogOptions::default()
    }
}

/// Opens a log with topics of which `compacted` keeps only the latest event of each key.
fn open(files: Arc<dyn Files>, options: LogOptions) -> Log {
    let (log, _) = Log::open(files, options).expect("it opens");
    for topic in ["compacted", "plain", "os"] {
        let options = TopicOptions {
            compaction: topic == "compacted",
            durability: match topic {
                "os" => Durability::Os,
                _ => Durability::Fsync,
            },
            ..TopicOptions::default()
        };
        log.append(&Plan::topic(topic, options).batch())
            .wait()
            .expect("a topic");
    }
    log
}

/// An event of about 1,000 bytes in two topics each, so that sealing has to group them.
fn events() -> Plan {
    let payload = format!(r#""{}""#, "x".repeat(900));
    Plan::events([
        PlannedEvent::new("compacted", payload.clone()).with_key("one"),
        PlannedEvent::new("plain", payload),
    ])
}

/// Waits for the answer of a commit; false if there is none in time.
fn is_committed_within(commit: &mut Commit, millis: u128) -> bool {
    let pause = Latch::default();
    for _ in 0..millis {
        if let Some(answer) = answer_of(commit) {
            answer.expect("a commit");
            return true;
        }
        let is_open = pause.is_open.lock().expect("no one panicked");
        drop(pause.opened.wait_timeout(is_open, Duration::from_millis(1)));
    }
    false
}

fn is_committed(mut commit: Commit) -> bool {
    is_committed_within(&mut commit, IN_VAIN.as_millis())
}

/// Holds a rewrite, that is a segment that is written anew though it has an index, until the test lets it go on.
#[derive(Default)]
struct HeldRewrite {
    indexed: Mutex<HashSet<String>>,
    begun: Latch,
    released: Latch,
}

impl Hook for HeldRewrite {
    fn before_create(&self, name: &str) {
        let segment = name.trim_end_matches(".seg.new");
        let is_rewrite = {
            let indexed = self.indexed.lock().expect("no one panicked");
            name.ends_with(".seg.new") && indexed.contains(segment)
        };
        if is_rewrite {
            self.begun.open();
            self.released.wait();
        }
    }

    fn after_rename(&self, _from: &str, to: &str) {
        if let Some(segment) = to.strip_suffix(".idx") {
            let mut indexed = self.indexed.lock().expect("no one panicked");
            indexed.insert(segment.to_owned());
        }
    }
}

#[test]
fn a_rewrite_that_takes_long_stops_neither_sealing_nor_publishing() {
    let hook = Arc::new(HeldRewrite::default());
    let files = Arc::new(HookedFiles {
        disk: Arc::new(FaultFiles::new()),
        hook: hook.clone(),
    });
    let log = open(files, options());
    let publish = || assert!(is_committed(log.append(&events().batch())), "in vain");
    // Segments full of superseded events, until one of them is being rewritten.
    for _ in 0..2000 {
        publish();
        if *hook.begun.is_open.lock().expect("no one panicked") {
            break;
        }
    }
    assert!(hook.begun.wait(), "nothing was rewritten");
    let sealed_before = hook.indexed.lock().expect("no one panicked").len();
    // Many times as much as may wait to be sealed.
    for _ in 0..10 * (1 + MAX_UNSEALED) * SEGMENT_BYTES as usize / 2000 {
        publish();
    }
    let sealed = hook.indexed.lock().expect("no one panicked").len() - sealed_before;
    assert!(sealed > 5 * MAX_UNSEALED, "{sealed} segments were sealed");
    hook.released.open();
    log.close().expect("it closes");
}

/// Lets sealing write only as many pieces as the test has given out.
#[derive(Default)]
struct HeldSealing {
    allowed: Mutex<Allowed>,
    changed: Condvar,
    published_bytes: AtomicUsize,
}

#[derive(Default)]
struct Allowed {
    pieces: usize,
    written_bytes: usize,
    is_free: bool,
}

impl Hook for HeldSealing {
    fn before_write(&self, name: &str, bytes: usize) {
        if name.ends_with(".seg") {
            self.published_bytes.fetch_add(bytes, Ordering::SeqCst);
        }
        if !name.ends_with(".seg.new") {
            return;
        }
        let allowed = self.allowed.lock().expect("no one panicked");
        let waited = self
            .changed
            .wait_timeout_while(allowed, IN_VAIN, |allowed| {
                allowed.pieces == 0 && !allowed.is_free
            });
        let mut allowed = waited.expect("no one panicked").0;
        allowed.pieces = allowed.pieces.saturating_sub(1);
        allowed.written_bytes += bytes;
    }
}

impl HeldSealing {
    fn allow(&self, change: impl FnOnce(&mut Allowed)) {
        change(&mut self.allowed.lock().expect("no one panicked"));
        self.changed.notify_all();
    }

    fn sealed_bytes(&self) -> usize {
        self.allowed.lock().expect("no one panicked").written_bytes
    }
}

#[test]
fn publishers_go_on_piece_by_piece_while_too_much_waits_to_be_sealed() {
    const SEGMENT: usize = 4 << 20;
    let hook = Arc::new(HeldSealing::default());
    let files = Arc::new(HookedFiles {
        disk: Arc::new(FaultFiles::new()),
        hook: hook.clone(),
    });
    let log = open(
        files,
        LogOptions {
            segment_bytes: SEGMENT as u64,
            ..options()
        },
    );
    let payload = format!(r#""{}""#, "x".repeat(50_000));
    let plan = Plan::events([
        PlannedEvent::new("compacted", payload.clone()),
        PlannedEvent::new("plain", payload),
    ]);
    // Nothing is sealed, so sooner or later a publisher has to wait; nothing fails meanwhile.
    let waiting = (0..6 * SEGMENT / 100_000).find_map(|_| {
        let mut commit = log.append(&plan.batch());
        (!is_committed_within(&mut commit, 500)).then_some(commit)
    });
    let waiting = waiting.expect("publishing went on without sealing");
    // One piece of a segment is sealed, which is far from a whole one, and the publisher goes on.
    let before = hook.sealed_bytes();
    hook.allow(|allowed| allowed.pieces = 2);
    assert!(is_committed(waiting), "in vain");
    let sealed = hook.sealed_bytes() - before;
    assert!(sealed < SEGMENT / 2, "{sealed} bytes were sealed for it");
    hook.allow(|allowed| allowed.is_free = true);
    for _ in 0..2 * SEGMENT / 100_000 {
        assert!(is_committed(log.append(&plan.batch())), "in vain");
    }
    log.close().expect("it closes");
}

/// Whenever the publisher writes, somebody else publishes too, and relies on it.
#[derive(Default)]
struct OneMore {
    log: OnceLock<Weak<Log>>,
    publisher: Mutex<Option<ThreadId>>,
    writes: AtomicUsize,
    commits: Mutex<Vec<Commit>>,
}

const MORE: usize = 200;

impl Hook for OneMore {
    fn before_write(&self, name: &str, _bytes: usize) {
        let publisher = *self.publisher.lock().expect("no one panicked");
        let is_publisher = publisher == Some(std::thread::current().id());
        if !name.ends_with(".seg") || !is_publisher {
            return;
        }
        if self.writes.fetch_add(1, Ordering::SeqCst) < MORE
            && let Some(log) = self.log.get().and_then(Weak::upgrade)
        {
            let plan = Plan::events([PlannedEvent::new("os", "1")]);
            let appended = std::thread::scope(|scope| {
                let other = scope.spawn(|| log.append(&plan.batch()));
                other.join().expect("it returns")
            });
            self.commits.lock().expect("no one panicked").push(appended);
        }
    }
}

#[test]
fn a_publisher_does_not_write_for_the_others_without_end() {
    let hook = Arc::new(OneMore::default());
    let files = Arc::new(HookedFiles {
        disk: Arc::new(FaultFiles::new()),
        hook: hook.clone(),
    });
    let log = Arc::new(open(
        files,
        LogOptions {
            segment_bytes: 64 << 20,
            os_sync_interval_ms: 3_600_000,
            ..options()
        },
    ));
    hook.log.set(Arc::downgrade(&log)).expect("it is set once");
    *hook.publisher.lock().expect("no one panicked") = Some(std::thread::current().id());
    let plan = Plan::events([PlannedEvent::new("os", "0")]);
    let commit = log.append(&plan.batch());
    *hook.publisher.lock().expect("no one panicked") = None;
    let writes = hook.writes.load(Ordering::SeqCst);
    assert!(writes < 20, "{writes} writes in one call");
    assert!(is_committed(commit), "in vain");
    // Those that relied on it have not been forgotten.
    let commits = std::mem::take(&mut *hook.commits.lock().expect("no one panicked"));
    assert_eq!(commits.len(), writes);
    for commit in commits {
        assert!(is_committed(commit), "in vain");
    }
    log.close().expect("it closes");
}
