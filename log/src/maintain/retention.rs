//! Retention: which positions a topic forgets, by age, by count and by bytes.

use crate::batch::{Batch, Change};
use crate::shared::Shared;
use crate::view::{TopicView, View};
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

/// A ts that no kept event at the front is older than; lower than all where that is not known.
fn oldest_ts(view: &View, topic: &TopicView) -> u64 {
    let mut runs = topic.runs.iter().map(|run| run.info());
    if let Some(run) = runs.find(|run| run.last_seq >= topic.first_seq) {
        return run.min_ts;
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
    for run in topic.runs.iter().rev().map(|run| run.info()) {
        let kept = run.kept_from(topic.first_seq);
        let kept_bytes = run.bytes * kept / run.events.max(1);
        match left.checked_sub(kept_bytes) {
            Some(rest) => left = rest,
            None => {
                let positions = run.last_seq - run.first_seq + 1;
                let fit = u128::from(positions) * u128::from(left) / u128::from(run.bytes.max(1));
                return run.last_seq + 1 - (fit as u64).min(positions);
            }
        }
    }
    0
}
