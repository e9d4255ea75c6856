//! Opening a damaged copy of a log and judging what it shows.

use super::image::Image;
use crate::fixture::{START_MS, options};
use crate::plan::{Plan, PlannedEvent, answer_of};
use crate::reading::{ALL, Seen, look};
use prombus_log::fault::FaultFiles;
use prombus_log::{Log, OpenReport, verify};
use prombus_store::conformance::Random;
use prombus_store::{Damage, ManualClock, TimeRange};
use std::sync::Arc;

/// Damages one file of a copy and checks everything about opening it.
pub(super) fn examine(image: &Image, name: &str, what: &str, damage: impl FnOnce(&mut Vec<u8>)) {
    let disk = image.disk.copy();
    disk.overwrite(name, damage).expect("the file is there");
    let case = Case {
        image,
        name,
        what,
        damaged: disk.bytes_of(name).expect("the file is there"),
    };
    let disk = Arc::new(disk);
    let checked = verify(disk.clone()).expect("nothing fails to be read");
    let (log, report) = case.open(&disk);
    let seen = look(&log, &mut Random::seeded(1));
    case.find_things(&log);
    let told = case.told(&log, &report);
    case.judge(&seen, &told);
    if name.ends_with(".seg") && !told.lines.is_empty() {
        let found = checked.damage.len() + usize::from(checked.torn_tail_bytes > 0);
        // What is only known to be missing has no bytes to be found damaged.
        let is_cut = case.damaged.len() < image.disk.bytes_of(name).expect("a file").len();
        assert!(found > 0 || is_cut, "{case}: verify finds nothing");
    }
    if name.ends_with(".state") && !told.lines.is_empty() {
        assert!(!checked.damage.is_empty(), "{case}: verify finds nothing");
    }
    case.check_kept(&disk, &told);
    drop(log);

    // The next start still tells of it, and shows the same.
    let disk = Arc::new(disk.process_crash());
    let (log, again) = case.open(&disk);
    for line in &told.damage {
        assert!(again.damage.contains(line), "{case}: forgot {line}");
    }
    assert_eq!(again.cut_tail, None, "{case}");
    let seen_again = look(&log, &mut Random::seeded(2));
    assert_eq!(texts(&seen), texts(&seen_again), "{case}");
    case.publish(&log);
}

/// A way to read events, other than by position.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    ByTime,
    LatestKeys,
    Latest,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::ByTime, Self::LatestKeys, Self::Latest];

    /// The events that this way shows of a topic.
    fn read(self, log: &Log, topic: &str) -> Vec<String> {
        let range = TimeRange {
            from_ts: 0,
            to_ts: u64::MAX,
            after: None,
        };
        let events = match self {
            Self::ByTime => {
                let page = log.read_by_time(topic, range, ALL);
                page.expect("a page").events
            }
            Self::LatestKeys => log.read_by_key(topic, None, ALL).expect("keys").events,
            Self::Latest => {
                let keys = ["k0", "k1", "k2"].into_iter();
                let latest = keys.map(|key| log.latest(topic, key).expect("a look-up"));
                latest.flatten().collect()
            }
        };
        events.iter().map(|event| event.json().to_owned()).collect()
    }
}

/// Flips a bit and reads in one way only.
pub(super) fn read_one_way(image: &Image, name: &str, at: usize, way: Way) {
    let clock = Arc::new(ManualClock::at(START_MS));
    let open = |disk: FaultFiles| {
        let opened = Log::open(Arc::new(disk), options(&clock, image.segment_bytes));
        opened.expect("it opens").0
    };
    let damaged = image.disk.copy();
    let flip = |bytes: &mut Vec<u8>| bytes[at] ^= 1;
    damaged.overwrite(name, flip).expect("the file is there");
    let (sound, damaged) = (open(image.disk.copy()), open(damaged));
    for topic in ["t", "u"] {
        let is_same = way.read(&sound, topic) == way.read(&damaged, topic);
        let is_told = !damaged.damage().is_empty();
        assert!(is_same || is_told, "{way:?} {name} byte {at}");
    }
}

/// One damaged byte or cut.
struct Case<'a> {
    image: &'a Image,
    name: &'a str,
    what: &'a str,
    damaged: Vec<u8>,
}

/// What the log said about it.
struct Told {
    damage: Vec<Damage>,
    /// The same, and the events of a tail that was cut.
    lines: Vec<String>,
}

impl std::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.what)
    }
}

impl Case<'_> {
    fn open(&self, disk: &Arc<FaultFiles>) -> (Log, OpenReport) {
        let clock = Arc::new(ManualClock::at(START_MS));
        let opened = Log::open(disk.clone(), options(&clock, self.image.segment_bytes));
        opened.unwrap_or_else(|error| panic!("{self}: refused: {error}"))
    }

    /// Looks things up in all ways; only reading in order says what has to be found.
    fn find_things(&self, log: &Log) {
        for info in log.topics() {
            let topic = &*info.name;
            let range = TimeRange {
                from_ts: 0,
                to_ts: u64::MAX,
                after: None,
            };
            let page = log.read_by_time(topic, range, ALL).expect("a page");
            let mut seqs: Vec<u64> = page.events.iter().map(|event| event.seq()).collect();
            seqs.sort_unstable();
            seqs.dedup();
            assert_eq!(seqs.len(), page.events.len(), "{self}");
            for key in ["k0", "k1"] {
                log.latest(topic, key).expect("a look-up");
            }
            log.read_by_key(topic, None, ALL).expect("keys");
            log.find_id(topic, "own-1").expect("a look-up");
            log.find_ts(topic, START_MS).expect("a look-up");
        }
    }

    fn told(&self, log: &Log, report: &OpenReport) -> Told {
        let damage = log.damage();
        let mut lines: Vec<String> = damage.iter().map(ToString::to_string).collect();
        if let Some(cut) = &report.cut_tail {
            lines.push(format!("cut {} bytes of {}", cut.bytes, cut.segment));
            lines.extend(cut.events.iter().map(ToString::to_string));
        }
        Told { damage, lines }
    }

    /// Nothing is different; what is missing was told.
    fn judge(&self, seen: &Seen, told: &Told) {
        let image = self.image;
        for (name, topic) in &seen.topics {
            for event in &topic.events {
                let place = (name.to_string(), event.seq());
                let ever = image.ever.get(&place);
                assert_eq!(ever.map(String::as_str), Some(event.json()), "{self}");
            }
        }
        if texts(seen) == texts(&image.seen) {
            return;
        }
        let is_index = self.name.ends_with(".idx");
        assert!(!is_index, "{self}: an index can always be made again");
        // Where the process was killed, an end that is missing without a trace looks like one never written.
        let is_cut = self.what.starts_with("cut");
        let may_be_prefix = is_cut && !image.is_closed && self.name == image.active;
        assert!(
            !told.lines.is_empty() || may_be_prefix,
            "{self}: silently different"
        );
        if !may_be_prefix {
            self.check_names(seen, told);
        }
    }

    /// Every event that is missing is told by its id, if that can be read, or else by its place.
    fn check_names(&self, seen: &Seen, told: &Told) {
        for (name, topic) in &self.image.seen.topics {
            let left = seen.topics.get(name);
            for event in &topic.events {
                let is_left = |left: &crate::reading::SeenTopic| {
                    let mut seqs = left.events.iter().map(|event| event.seq());
                    seqs.any(|seq| seq == event.seq())
                };
                if left.is_some_and(is_left) {
                    continue;
                }
                let id = event.id();
                let by_id = format!("id {id}");
                let by_id = told.lines.iter().any(|line| line.contains(&by_id));
                let places = [name, "?"].map(|name| format!("{name} seq {} ", event.seq()));
                let is_named = |line: &String| places.iter().any(|place| line.contains(place));
                let is_lost = |damage: &Damage| damage.names(name, event.seq());
                let by_place = told.lines.iter().any(is_named) || told.damage.iter().any(is_lost);
                let was_cut = self.what.starts_with("cut");
                // Without what follows it, nobody can tell where a cut id would have ended.
                let readable = format!("{id}{}", if was_cut { "\"" } else { "" });
                let is_readable = contains(&self.damaged, readable.as_bytes());
                assert!(
                    by_id || !is_readable,
                    "{self}: {id} is not named in {:?}",
                    told.lines
                );
                assert!(
                    by_id || by_place || !was_cut,
                    "{self}: {event:?} is not named in {:?}",
                    told.lines
                );
            }
        }
    }

    /// The damaged bytes are still there: in their place, kept aside, or split into what stays and the cut tail.
    fn check_kept(&self, disk: &FaultFiles, told: &Told) {
        let is_kept_whole = [".seg", ".state"]
            .iter()
            .any(|end| self.name.ends_with(end));
        if told.lines.is_empty() || !is_kept_whole {
            return;
        }
        let bytes_of = |name: &str| disk.bytes_of(name).ok();
        let kept = bytes_of(&format!("damaged-{}.kept", self.name));
        let now = bytes_of(self.name).unwrap_or_default();
        let cut = bytes_of("cut-tail.bytes").unwrap_or_default();
        let is_kept = kept.as_ref() == Some(&self.damaged)
            || now == self.damaged
            || is_same_but_for_zeros(&[now, cut].concat(), &self.damaged);
        assert!(is_kept, "{self}: the damaged bytes are gone");
    }

    fn publish(&self, log: &Log) {
        let topic = "after.damage";
        let mut batch = Plan::topic(topic, Default::default());
        batch.events.push(PlannedEvent::new(topic, "1"));
        let mut commit = log.append(&batch.batch());
        log.commit_now();
        let answer = answer_of(&mut commit).expect("an answer");
        assert!(answer.is_ok(), "{self}: {answer:?}");
        let page = log.read(topic, 1, ALL).expect("a page");
        assert_eq!(page.events.len(), 1, "{self}");
    }
}

/// All that a log shows, as text.
fn texts(seen: &Seen) -> Vec<String> {
    let mut texts = Vec::new();
    for topic in seen.topics.values() {
        let info = &topic.info;
        texts.push(format!(
            "{} {:?} {} {}",
            info.name, info.options, info.first_seq, info.tail_seq
        ));
        texts.extend(topic.events.iter().map(|event| event.json().to_owned()));
    }
    texts.extend(seen.keyed.iter().map(|keyed| format!("{keyed:?}")));
    texts
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

/// Zeros at the end are room for what comes, and are not kept.
fn is_same_but_for_zeros(kept: &[u8], damaged: &[u8]) -> bool {
    let is_zero = |&byte: &u8| byte == 0;
    damaged
        .strip_prefix(kept)
        .is_some_and(|rest| rest.iter().all(is_zero))
}
