//! Opening a harmed log and comparing it with what it was.

use super::corrupt::Harm;
use super::populated::{Populated, log_options};
use crate::plan::{Plan, PlannedEvent, answer_of};
use crate::reading::{Seen, look};
use prombus_log::fault::FaultFiles;
use prombus_log::{Files, Log, OpenReport, verify};
use prombus_store::conformance::Random;
use prombus_store::{Damage, EventOutcome};
use std::sync::Arc;

/// One harmed log that was opened and read.
struct Case<'a> {
    log: &'a Populated,
    harm: &'a Harm,
    seen: Seen,
    damage: Vec<Damage>,
    report: OpenReport,
}

pub(super) fn judge(log: &Populated, harm: &Harm) {
    let _named = Named(&harm.what);
    let before = contents(&harm.disk);
    let disk = Arc::new(harm.disk.copy());
    let checked = verify(disk.clone()).unwrap_or_else(|error| panic!("{}: {error}", harm.what));
    assert_eq!(
        contents(&disk),
        before,
        "{}: a check changes nothing",
        harm.what
    );
    let (opened, report) = open(log, harm, &disk);
    let seen = look(&opened, &mut Random::seeded(1));
    let case = Case {
        log,
        harm,
        seen,
        damage: opened.damage(),
        report,
    };
    case.check_events();
    case.check_state();
    case.check_kept(&before, &contents(&disk));
    case.check_agreement(&checked.damage, checked.torn_tail_bytes);
    case.check_positions(&opened);
    drop(opened);

    // The next start still names it.
    let disk = Arc::new(disk.process_crash());
    let (again, _) = open(log, harm, &disk);
    for damage in &case.damage {
        let known = again.damage();
        assert!(known.contains(damage), "{}: forgot {damage}", harm.what);
    }
}

/// Says what was done to a log whose test ends in the middle of it.
struct Named<'a>(&'a str);

impl Drop for Named<'_> {
    #[allow(clippy::print_stderr, reason = "a reader of the failure needs to know")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("harm: {}", self.0);
        }
    }
}

fn open(log: &Populated, harm: &Harm, disk: &Arc<FaultFiles>) -> (Log, OpenReport) {
    let opened = Log::open(disk.clone(), log_options(log.log_id));
    opened.unwrap_or_else(|error| panic!("{}: {error}", harm.what))
}

/// Every file with its bytes.
fn contents(disk: &FaultFiles) -> Vec<(String, Vec<u8>)> {
    let names = disk.list().expect("names").into_iter();
    let files = names.map(|name| {
        let bytes = disk.bytes_of(&name).expect("a file");
        (name, bytes)
    });
    files.collect()
}

impl Case<'_> {
    /// Where the process was killed, an end of the last segment that is gone looks like one that was never written.
    fn may_lack_end(&self) -> bool {
        let is_end = |name: &String| *name == self.log.active;
        let is_active_harmed = self.harm.names.iter().any(is_end);
        let is_end_gone = self.report.cut_tail.is_some()
            || ["cut", "zero", "copy a range"]
                .iter()
                .any(|way| self.harm.what.starts_with(way));
        !self.log.is_closed && is_active_harmed && is_end_gone
    }

    fn is_told(&self) -> bool {
        !self.damage.is_empty() || self.report.cut_tail.is_some() || self.may_lack_end()
    }

    /// No event is another one, and each that is missing is named.
    fn check_events(&self) {
        let what = &self.harm.what;
        for (name, topic) in &self.seen.topics {
            for event in &topic.events {
                let ever = self.log.ever.get(&(name.to_string(), event.seq()));
                assert_eq!(ever.map(String::as_str), Some(event.json()), "{what}");
            }
        }
        for (name, topic) in &self.log.seen.topics {
            let left = self.seen.topics.get(name);
            for event in &topic.events {
                let is_left = left.is_some_and(|left| {
                    let found = left
                        .events
                        .binary_search_by_key(&event.seq(), |one| one.seq());
                    found.is_ok()
                });
                let is_named = |damage: &Damage| damage.names(name, event.seq());
                assert!(
                    is_left || self.damage.iter().any(is_named) || self.may_lack_end(),
                    "{what}: {name} seq {} is not named in {:#?}",
                    event.seq(),
                    self.damage
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>()
                );
            }
        }
    }

    /// Topics and keyed records are as they were, or something was told.
    fn check_state(&self) {
        let options = |seen: &Seen| {
            let topics = seen.topics.iter();
            let topics = topics.map(|(name, topic)| (name.clone(), topic.info.options.clone()));
            topics.collect::<Vec<_>>()
        };
        let is_same = options(&self.seen) == options(&self.log.seen)
            && self.seen.keyed == self.log.seen.keyed;
        assert!(
            is_same || self.is_told(),
            "{}: state is lost",
            self.harm.what
        );
    }

    /// Every segment is still there byte by byte, under its own name or another one. The last one is written to, and
    /// what is cut off it is kept apart.
    fn check_kept(&self, before: &[(String, Vec<u8>)], after: &[(String, Vec<u8>)]) {
        let is_segment = |name: &str| name.ends_with(".seg") && *name != self.log.active;
        for (name, bytes) in before.iter().filter(|(name, _)| is_segment(name)) {
            let is_kept = after.iter().any(|(_, kept)| kept.starts_with(bytes));
            assert!(is_kept, "{}: {name} is gone", self.harm.what);
        }
    }

    /// A check finds damage if a start and readers do. It also finds what no reader wants any more.
    fn check_agreement(&self, checked: &[Damage], torn_tail_bytes: u64) {
        let what = &self.harm.what;
        let is_cut = self.report.cut_tail.is_some();
        assert_eq!(torn_tail_bytes > 0, is_cut, "{what}: torn tail");
        if !self.damage.is_empty() {
            assert!(
                !checked.is_empty(),
                "{what}: the check finds nothing of {:?}",
                self.damage
            );
            return;
        }
        for (name, topic) in &self.log.seen.topics {
            // A copy of an event in the wrong place is damage there, though the event is not lost.
            let ranges = || checked.iter().flat_map(|damage| &damage.lost);
            let mut of_topic = ranges().filter(|lost| lost.topic.as_deref() == Some(name));
            let lost = of_topic.find(|lost| {
                let mut seqs = topic.events.iter().map(|event| event.seq());
                seqs.any(|seq| (lost.from..=lost.to).contains(&seq))
            });
            assert!(lost.is_none(), "{what}: only the check finds {checked:?}");
        }
    }

    /// New events get positions that no event had.
    fn check_positions(&self, opened: &Log) {
        for (name, topic) in &self.log.seen.topics {
            if !self.seen.topics.contains_key(name) || self.may_lack_end() {
                continue;
            }
            let plan = Plan::events([PlannedEvent::new(name, "1")]);
            let mut commit = opened.append(&plan.batch());
            opened.commit_now();
            let receipt = answer_of(&mut commit)
                .expect("an answer")
                .expect("a commit");
            let [EventOutcome::Stored(placed)] = receipt.events.as_slice() else {
                panic!("{}: {receipt:?}", self.harm.what);
            };
            let tail_seq = topic.info.tail_seq;
            assert!(
                placed.seq > tail_seq,
                "{}: {name} gives {}",
                self.harm.what,
                placed.seq
            );
        }
    }
}
