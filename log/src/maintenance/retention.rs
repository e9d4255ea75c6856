//! Retention: which positions a topic forgets, by age, by count and by bytes.

use crate::maintainer::Maintainer;
use crate::segment::sealed::{RunItem, Sealed};
use crate::view::{SealedRun, TopicView, View};
use crate::write_buffer::Known;
use prombus_store::{Batch, Change, ReadError};
use std::sync::Arc;

/// What a topic may keep.
struct Limits {
    topic: Arc<str>,
    number: u32,
    /// When the oldest event to keep was stored, where something may be older.
    cutoff_ms: Option<u64>,
    /// The first position that count and bytes leave.
    first_seq: u64,
    /// The tail when this was found.
    tail_seq: u64,
}

impl Maintainer {
    /// Forgets what the topics' options say. The space is freed by later maintenance.
    pub(super) fn apply_retention(&self) {
        let now_ms = self.committer.options.clock.now_ms();
        let limits = self.due_limits(now_ms);
        self.trim(&limits, now_ms);
    }

    /// What the topics' options ask for at a time.
    pub(crate) fn due_trims(&self, now_ms: u64) -> Vec<Change> {
        let limits = self.due_limits(now_ms).into_iter();
        let limits = limits.filter(|limits| limits.first_seq > 0);
        let trim = |limits: Limits| Change::Trim {
            topic: limits.topic,
            first_seq: limits.first_seq,
        };
        limits.map(trim).collect()
    }

    fn due_limits(&self, now_ms: u64) -> Vec<Limits> {
        self.learn_oldest_times();
        let mut limits = self.limits_of_topics(now_ms);
        for limits in &mut limits {
            // The longest run of events at the front that are all older goes. Nothing behind the tail that was seen
            // does, and nothing where the disk does not answer.
            if let Some(cutoff_ms) = limits.cutoff_ms
                && let Ok(kept) = self.first_stored_since(limits.number, cutoff_ms)
            {
                let behind_tail = limits.tail_seq + 1;
                let kept_from = kept.unwrap_or(behind_tail).min(behind_tail);
                limits.first_seq = limits.first_seq.max(kept_from);
            }
        }
        limits
    }

    /// The first position that a topic keeps whose event was stored at this time or later. Whole runs are told by their
    /// directories; of the one in which the time falls, only what retention is about to take is read.
    fn first_stored_since(&self, number: u32, since_ms: u64) -> Result<Option<u64>, ReadError> {
        // What is not sealed is looked at together with what is, since sealing moves events from one to the other.
        let (runs, first_seq, unsealed) = {
            let view = self.reader.view();
            let Some(topic) = view.topics.get(&number) else {
                return Ok(None);
            };
            let unsealed = view.active_segments.iter().find_map(|active| {
                let run = active.runs.get(&number)?;
                let mut kept = run.entries_from(topic.first_seq).iter();
                kept.find(|entry| run.stored_ms(entry) >= since_ms)
            });
            let unsealed = unsealed.map(|entry| entry.seq);
            (topic.kept_runs().to_vec(), topic.first_seq, unsealed)
        };
        for run in &runs {
            let segment = &run.segment;
            let Some(info) = self.reader.or_rebuild(segment, segment.run(number))? else {
                return self.first_stored_since(number, since_ms);
            };
            let Some(info) = info else {
                continue;
            };
            if info.last_seq < first_seq || info.max_stored_ms < since_ms {
                continue;
            }
            let from_seq = first_seq.max(info.first_seq);
            if info.min_stored_ms >= since_ms {
                return Ok(Some(from_seq));
            }
            let offset = segment.offset_for_seq(&info, from_seq);
            let Some(offset) = self.reader.or_rebuild(segment, offset)? else {
                return self.first_stored_since(number, since_ms);
            };
            let mut reader = segment.reader(&info, offset);
            while let Some(item) = reader.next()? {
                match item {
                    RunItem::Event { event, .. } if event.seq() >= from_seq => {
                        let stored_ms = event.stored_ms();
                        if stored_ms.unwrap_or(segment.header.created_ms) >= since_ms {
                            return Ok(Some(event.seq()));
                        }
                    }
                    RunItem::Event { .. } => {}
                    RunItem::Damage(range) => self.reader.note_damage(segment, range),
                }
            }
        }
        Ok(unsealed)
    }

    /// Moves the topics' first positions, except where another topic of the name has come meanwhile.
    fn trim(&self, limits: &[Limits], now_ms: u64) {
        let mut buffer = self.committer.buffer();
        let mut batch = Batch::new();
        for limits in limits.iter().filter(|limits| limits.first_seq > 0) {
            let topic = buffer.topics.get(&limits.topic);
            if topic.is_some_and(|topic| topic.record.number == limits.number) {
                batch.change(Change::Trim {
                    topic: limits.topic.clone(),
                    first_seq: limits.first_seq,
                });
            }
        }
        // No one waits for the answer: what is not trimmed now will be next time.
        if !batch.is_empty() && buffer.admit(&batch, Known::default(), now_ms).is_ok() {
            self.committer.want_sync(&mut buffer);
        }
    }

    /// Reads when the first event of the first run that each topic keeps was stored, for topics whose retention depends
    /// on it and whose first run is another one than the last time.
    fn learn_oldest_times(&self) {
        let mut unknown: Vec<(u32, Arc<Sealed>)> = Vec::new();
        self.visit_topics(|_, topic| {
            if topic.options.retention_ms.is_some()
                && let Some(run) = topic.kept_runs().first()
                && topic.oldest_stored.map(|(of, _)| of) != Some(identity(run))
            {
                unknown.push((topic.number, run.segment.clone()));
            }
        });
        for (number, segment) in unknown {
            // What cannot be read is not forgotten; reading the topic will make the index again.
            let Ok(Some(info)) = segment.run(number) else {
                continue;
            };
            if let Some(topic) = self.reader.view_mut().topics.get_mut(&number) {
                let of = (segment.header.number, segment.header.generation);
                topic.oldest_stored = Some((of, info.min_stored_ms));
            }
        }
    }

    /// The topics that may have something to forget.
    fn limits_of_topics(&self, now_ms: u64) -> Vec<Limits> {
        let mut limits = Vec::new();
        self.visit_topics(|view, topic| {
            let options = &topic.options;
            let tail_seq = topic.tail_seq();
            if topic.first_seq > tail_seq {
                return;
            }
            let by_events = options
                .max_events
                .map_or(0, |most| (tail_seq + 1).saturating_sub(most));
            let by_bytes = options
                .max_bytes
                .map_or(0, |most| first_within(view, topic, most));
            let cutoff_ms = options
                .retention_ms
                .map(|retention_ms| now_ms.saturating_sub(retention_ms))
                .filter(|cutoff_ms| oldest_stored_ms(view, topic) < *cutoff_ms);
            let first_seq = by_events.max(by_bytes);
            if cutoff_ms.is_some() || first_seq > topic.first_seq {
                limits.push(Limits {
                    topic: topic.name.clone(),
                    number: topic.number,
                    cutoff_ms,
                    first_seq,
                    tail_seq,
                });
            }
        });
        limits
    }
}

/// A run's segment as it is now.
fn identity(run: &SealedRun) -> (u64, u32) {
    (run.segment.header.number, run.segment.header.generation)
}

/// A time that no kept event at the front was stored before.
fn oldest_stored_ms(view: &View, topic: &TopicView) -> u64 {
    if let Some(run) = topic.kept_runs().first() {
        let known = topic.oldest_stored.filter(|(of, _)| *of == identity(run));
        // Where it is not known nothing is forgotten by age.
        return known.map_or(u64::MAX, |(_, oldest_ms)| oldest_ms);
    }
    let mut active_segments = view.active_segments.iter();
    let first = active_segments.find_map(|active| {
        let run = active.runs.get(&topic.number)?;
        let first = run.entries_from(topic.first_seq).first()?;
        Some(run.stored_ms(first))
    });
    first.unwrap_or(u64::MAX)
}

/// The first position from which on the topic takes at most `most` bytes. Within a sealed run events count as of
/// equal size.
fn first_within(view: &View, topic: &TopicView, most: u64) -> u64 {
    let mut left = most;
    for active in view.active_segments.iter().rev() {
        let Some(run) = active.runs.get(&topic.number) else {
            continue;
        };
        for entry in run.entries_from(topic.first_seq).iter().rev() {
            match left.checked_sub(u64::from(entry.bytes)) {
                Some(rest) => left = rest,
                None => return entry.seq + 1,
            }
        }
    }
    for (run, end_seq) in view.runs_with_ends(topic).rev() {
        match left.checked_sub(run.kept_bytes(topic.first_seq, end_seq)) {
            Some(rest) => left = rest,
            None => {
                let positions = end_seq - run.first_seq;
                let fit = u128::from(positions) * u128::from(left) / u128::from(run.bytes().max(1));
                return end_seq - (fit as u64).min(positions);
            }
        }
    }
    0
}
