//! Retention: which positions a topic forgets, by age, by count and by bytes.

use crate::batch::{Batch, Change};
use crate::segment::sealed::Sealed;
use crate::shared::Shared;
use crate::view::{SealedRun, TopicView, View};
use std::sync::Arc;

/// What a topic may keep.
struct Limits {
    topic: Arc<str>,
    number: u32,
    /// The ts of the oldest event to keep, where something may be older.
    cutoff_ts: Option<u64>,
    /// The first position that count and bytes leave.
    first_seq: u64,
    /// The tail when this was found.
    tail_seq: u64,
}

impl Shared {
    /// Forgets what the topics' options say. The space is freed by later upkeep.
    pub(super) fn apply_retention(&self) {
        let now_ms = self.options.clock.now_ms();
        self.learn_oldest_times();
        let mut limits = self.limits_of_topics(now_ms);
        for limits in &mut limits {
            // The longest run of events at the front that are all older goes. Nothing behind the tail that was seen
            // does, and nothing where the disk does not answer.
            if let Some(cutoff_ts) = limits.cutoff_ts
                && let Ok(kept) = self.find_ts(&limits.topic, cutoff_ts)
            {
                let behind_tail = limits.tail_seq + 1;
                let kept_from = kept.unwrap_or(behind_tail).min(behind_tail);
                limits.first_seq = limits.first_seq.max(kept_from);
            }
        }
        self.trim(&limits, now_ms);
    }

    /// Moves the topics' first positions, except where another topic of the name has come meanwhile.
    fn trim(&self, limits: &[Limits], now_ms: u64) {
        let mut front = self.front();
        let mut batch = Batch::new();
        for limits in limits.iter().filter(|limits| limits.first_seq > 0) {
            let topic = front.topics.get(&limits.topic);
            if topic.is_some_and(|topic| topic.record.number == limits.number) {
                batch.change(Change::Trim {
                    topic: limits.topic.clone(),
                    first_seq: limits.first_seq,
                });
            }
        }
        // Nobody waits for the answer: what is not trimmed now will be next time.
        if !batch.is_empty() && front.admit(&batch, &[], now_ms).is_ok() {
            self.want_sync(&mut front);
        }
    }

    /// Reads the lowest ts of the first run that each topic keeps, for topics whose retention depends on it and whose
    /// first run is another one than the last time.
    fn learn_oldest_times(&self) {
        let unknown: Vec<(u32, Arc<Sealed>)> = {
            let view = self.view();
            let by_age = view
                .topics
                .values()
                .filter(|topic| topic.options.retention_ms.is_some());
            let unknown = by_age.filter_map(|topic| {
                let run = topic.kept_runs().first()?;
                let known = topic.oldest_ts.map(|(of, _)| of);
                (known != Some(identity(run))).then(|| (topic.number, run.segment.clone()))
            });
            unknown.collect()
        };
        for (number, segment) in unknown {
            // What cannot be read is not forgotten; reading the topic will make the index again.
            let Ok(Some(info)) = segment.run(number) else {
                continue;
            };
            if let Some(topic) = self.view_mut().topics.get_mut(&number) {
                let of = (segment.header.number, segment.header.generation);
                topic.oldest_ts = Some((of, info.min_ts));
            }
        }
    }

    /// The topics that may have something to forget.
    fn limits_of_topics(&self, now_ms: u64) -> Vec<Limits> {
        let view = self.view();
        let mut limits = Vec::new();
        for topic in view.topics.values() {
            let options = &topic.options;
            let tail_seq = topic.tail_seq();
            if topic.first_seq > tail_seq {
                continue;
            }
            let by_events = options
                .max_events
                .map_or(0, |most| (tail_seq + 1).saturating_sub(most));
            let by_bytes = options
                .max_bytes
                .map_or(0, |most| first_within(&view, topic, most));
            let cutoff_ts = options
                .retention_ms
                .map(|retention_ms| now_ms.saturating_sub(retention_ms))
                .filter(|cutoff_ts| oldest_ts(&view, topic) < *cutoff_ts);
            let first_seq = by_events.max(by_bytes);
            if cutoff_ts.is_some() || first_seq > topic.first_seq {
                limits.push(Limits {
                    topic: topic.name.clone(),
                    number: topic.number,
                    cutoff_ts,
                    first_seq,
                    tail_seq,
                });
            }
        }
        limits
    }
}

/// A run's segment as it is now.
fn identity(run: &SealedRun) -> (u64, u32) {
    (run.segment.header.number, run.segment.header.generation)
}

/// A ts that no kept event at the front is older than.
fn oldest_ts(view: &View, topic: &TopicView) -> u64 {
    if let Some(run) = topic.kept_runs().first() {
        let known = topic.oldest_ts.filter(|(of, _)| *of == identity(run));
        // Where it is not known nothing is forgotten by age.
        return known.map_or(u64::MAX, |(_, oldest_ts)| oldest_ts);
    }
    let mut streams = view.streams.iter();
    let first = streams.find_map(|stream| {
        let run = stream.runs.get(&topic.number)?;
        run.entries_from(topic.first_seq).first()
    });
    first.map_or(u64::MAX, |entry| entry.ts)
}

/// The first position from which on the topic takes at most `most` bytes. Within a sealed run events count as of
/// equal size.
fn first_within(view: &View, topic: &TopicView, most: u64) -> u64 {
    let mut left = most;
    for stream in view.streams.iter().rev() {
        let Some(run) = stream.runs.get(&topic.number) else {
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
