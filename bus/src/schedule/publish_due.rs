//! Publishing what is due: the events and what becomes of their schedules, as one atomic batch.

use super::index::Due;
use super::record::{Record, SCHEDULES_TOPIC, behind, forget};
use super::repeat::Repeat;
use super::scheduler::Run;
use crate::publish::is_tombstone;
use prombus_interface::names::stable_hash;
use prombus_store::{
    Batch, CommitError, Draft, Id, LimitReached, MAX_ID_BYTES, ReadError, ReadFrom, ReadLimit,
    StoredEvent,
};
use std::sync::Arc;

/// The header of an event that was published late, with the time it was due at.
pub(super) const SCHEDULED_FOR_HEADER: &str = "x-scheduled-for";
/// The most schedules that are published together, and about how many bytes of them.
const MAX_DUE: usize = 512;
const MAX_DUE_BYTES: usize = 4 << 20;
/// The most missed times of one schedule that are published together.
const MAX_MISSED: usize = 256;
/// An event that is this late says when it was due, also where the server was there all the time.
const LATE_MS: u64 = 10_000;
/// How long one waits that the store does not take by itself, and how many wait so.
const DEFER_MS: u64 = 10_000;
const MAX_DEFERRED: usize = 1_024;
/// Records of schedules that are this close to each other are read in one go.
const MAX_GAP: u64 = 64;

/// What came of a look at what is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing is due any more.
    Done,
    /// Something was published; more may be due.
    More,
    /// The store failed.
    Failed,
    /// The store is closed.
    Closed,
}

/// A schedule that is due, with its record.
struct DueSchedule {
    due: Due,
    event: StoredEvent,
    record: Record,
    /// Its event can never be published: it is only forgotten.
    is_impossible: bool,
}

/// A batch, and which schedule each of its events is of.
struct DueBatch {
    batch: Batch,
    /// For each event of the batch the place of its schedule.
    owners: Vec<usize>,
    topics: Vec<Arc<str>>,
    /// How many events of each topic there are, in the order of `topics`.
    published: Vec<(Arc<str>, u64)>,
}

impl Run {
    /// Publishes some of what is due now.
    pub(super) async fn publish_due(&mut self) -> Outcome {
        let now_ms = self.core.now_ms();
        while let Some((_, due)) = self.deferred.front().filter(|(at_ms, _)| *at_ms <= now_ms) {
            self.index.put_back(due);
            self.deferred.pop_front();
        }
        let due = self.index.take_due(now_ms, MAX_DUE);
        if due.is_empty() {
            return Outcome::Done;
        }
        let taken = due.clone();
        let outcome = match self.read_due(due).await {
            Ok(schedules) => self.commit_due(schedules, now_ms).await,
            Err(error) => {
                let cause = error.to_string();
                tracing::warn!(cause, "schedules cannot be read; trying again");
                Outcome::Failed
            }
        };
        if outcome == Outcome::Failed {
            taken.iter().for_each(|due| self.index.put_back(due));
        }
        outcome
    }

    /// Commits until all of `schedules` are published, or were by others.
    async fn commit_due(&mut self, mut schedules: Vec<DueSchedule>, now_ms: u64) -> Outcome {
        while !schedules.is_empty() {
            // What does not fit into this batch is due in the next.
            let count = count_within(&schedules, MAX_DUE_BYTES);
            for left in schedules.drain(count..) {
                self.index.put_back(&left.due);
            }
            for schedule in &mut schedules {
                let topic: Arc<str> = schedule.record.meta.topic.as_str().into();
                if self.core.topics.check(&topic).is_err() {
                    schedule.give_up("there is no such topic");
                }
            }
            let built = self.build(&schedules, now_ms);
            let topics = built.topics.iter();
            let commit = self.core.topics.commit_creating(built.batch, topics);
            let error = match commit.await {
                Ok(_) => {
                    self.core.schedules.count_published(&built.published);
                    return Outcome::More;
                }
                Err(error) => error,
            };
            for topic in &built.topics {
                self.core.topics.forget(topic);
            }
            match error {
                CommitError::Closed => return Outcome::Closed,
                // Another node has published it, or somebody has removed it.
                CommitError::SeqMismatch(mismatch) => {
                    let lost = built.owners.get(mismatch.event).copied();
                    schedules.remove(lost.unwrap_or(0).min(schedules.len() - 1));
                    if self.follow().await.is_err() {
                        return Outcome::Failed;
                    }
                    schedules.retain(|schedule| self.index.is_waiting(&schedule.due));
                }
                CommitError::IdConflict(conflict) => {
                    let blamed = schedules.iter_mut().find(|schedule| {
                        let is_its_topic = schedule.record.meta.topic == *conflict.topic;
                        let mut ids = schedule.times(now_ms).0.into_iter();
                        is_its_topic && ids.any(|due| schedule.event_id(due) == conflict.id)
                    });
                    match blamed {
                        Some(schedule) => schedule.give_up("its id is taken by another event"),
                        None => return Outcome::Failed,
                    }
                }
                // Fewer may fit. One that does not, by itself, waits without keeping the others.
                CommitError::LimitReached(limit) => {
                    let half = schedules.len().div_ceil(2);
                    match schedules.len() {
                        1 => return self.defer(&schedules[0].due, &limit, now_ms),
                        _ => schedules
                            .drain(half..)
                            .for_each(|left| self.index.put_back(&left.due)),
                    }
                }
                other => {
                    let cause = other.to_string();
                    tracing::warn!(cause, "due events are not published; trying again");
                    return Outcome::Failed;
                }
            }
        }
        Outcome::More
    }

    /// Tries a schedule again later, because the store does not take its event now.
    fn defer(&mut self, due: &Due, limit: &LimitReached, now_ms: u64) -> Outcome {
        let cause = limit.to_string();
        tracing::warn!(cause, "a due event is not published; trying again");
        if self.deferred.len() >= MAX_DEFERRED {
            return Outcome::Failed;
        }
        self.deferred.push_back((now_ms + DEFER_MS, *due));
        Outcome::More
    }

    /// Reads the records of schedules, together where they are close to each other. Of one whose record is gone another
    /// one tells.
    async fn read_due(&self, mut due: Vec<Due>) -> Result<Vec<DueSchedule>, ReadError> {
        due.sort_unstable_by_key(|due| due.waiting.seq);
        let mut schedules = Vec::with_capacity(due.len());
        let mut wanted = due.as_slice();
        while let Some(first) = wanted.first() {
            let close = wanted
                .windows(2)
                .take_while(|pair| pair[1].waiting.seq - pair[0].waiting.seq <= MAX_GAP);
            let last = &wanted[close.count()];
            let (first_seq, last_seq) = (first.waiting.seq, last.waiting.seq);
            let limit = ReadLimit {
                events: usize::try_from(last_seq - first_seq + 1).unwrap_or(usize::MAX),
                bytes: MAX_DUE_BYTES,
            };
            let from = ReadFrom::Seq(first_seq);
            let page = self.core.store.read(&self.topic, from, limit).await?;
            let read_to = page.next_seq.max(first_seq + 1);
            let here = wanted.partition_point(|due| due.waiting.seq < read_to);
            for due in &wanted[..here] {
                let seq = due.waiting.seq;
                let at = page.events.binary_search_by_key(&seq, StoredEvent::seq);
                let event = at.ok().map(|at| page.events[at].clone());
                let record = event.as_ref().and_then(Record::of);
                if let (Some(event), Some(record)) = (event, record) {
                    schedules.push(DueSchedule {
                        due: *due,
                        event,
                        record,
                        is_impossible: false,
                    });
                }
            }
            wanted = &wanted[here..];
        }
        // In the order in which they are due.
        schedules.sort_by_key(|schedule| (schedule.due.waiting.due, schedule.due.waiting.seq));
        Ok(schedules)
    }

    fn build(&self, schedules: &[DueSchedule], now_ms: u64) -> DueBatch {
        let mut built = DueBatch {
            batch: Batch::atomic(),
            owners: Vec::new(),
            topics: Vec::new(),
            published: Vec::new(),
        };
        for (place, schedule) in schedules.iter().enumerate() {
            let (times, next) = schedule.times(now_ms);
            if !schedule.is_impossible {
                built.add_events(place, schedule, &times, |due| {
                    due < self.started_ms || now_ms.saturating_sub(due) >= LATE_MS
                });
            }
            let next = next.filter(|_| !schedule.is_impossible);
            built.add_schedule(place, schedule, next);
        }
        built
    }
}

impl DueBatch {
    /// Adds the events of a schedule.
    fn add_events(
        &mut self,
        place: usize,
        schedule: &DueSchedule,
        times: &[u64],
        is_late: impl Fn(u64) -> bool,
    ) {
        let Record { meta, fields, .. } = &schedule.record;
        let topic = match self.topics.iter().find(|topic| ***topic == meta.topic) {
            Some(topic) => topic.clone(),
            None => {
                let topic: Arc<str> = meta.topic.as_str().into();
                self.topics.push(topic.clone());
                self.published.push((topic.clone(), 0));
                topic
            }
        };
        for &due in times {
            let mut headers = schedule.record.headers();
            if is_late(due) {
                headers.retain(|(name, _)| name != SCHEDULED_FOR_HEADER);
                headers.push((SCHEDULED_FOR_HEADER.to_owned(), due.to_string()));
            }
            self.batch.publish(
                &topic,
                &Draft {
                    id: Id::from_client(&schedule.event_id(due)),
                    ts: Some(due),
                    sid: fields.sid.as_deref(),
                    key: meta.key.as_deref(),
                    partition: fields.partition,
                    headers: &headers,
                    payload: schedule.event.payload(),
                    caused_by: &fields.caused_by,
                    tags: &fields.tags,
                    tombstone: is_tombstone(schedule.event.payload()),
                    ..Draft::default()
                },
            );
            self.owners.push(place);
        }
        let count = times.len() as u64;
        if let Some((_, published)) = self.published.iter_mut().find(|(of, _)| *of == topic) {
            *published += count;
        }
    }

    /// Adds what becomes of the schedule: its next time, or that it is gone.
    fn add_schedule(&mut self, place: usize, schedule: &DueSchedule, next: Option<u64>) {
        let Record { id, meta, fields } = &schedule.record;
        let seq = schedule.event.seq();
        self.owners.push(place);
        let Some(due) = next else {
            return forget(&mut self.batch, id, seq);
        };
        self.batch.publish(
            &SCHEDULES_TOPIC.into(),
            &Draft {
                ts: Some(due),
                sid: fields.sid.as_deref(),
                key: Some(id),
                partition: fields.partition,
                headers: &meta.with_headers(&schedule.record.headers()),
                payload: schedule.event.payload(),
                caused_by: &fields.caused_by,
                tags: &fields.tags,
                expected: behind(seq),
                ..Draft::default()
            },
        );
    }
}

impl DueSchedule {
    /// The times that are to be published now, and the next one that is not.
    fn times(&self, now_ms: u64) -> (Vec<u64>, Option<u64>) {
        let first = self.event.ts();
        let every = self.record.meta.every.as_deref();
        let Some(repeat) = every.and_then(|every| Repeat::parse(every).ok()) else {
            return (vec![first], None);
        };
        if !self.record.meta.catch_up {
            let last = repeat.last_until(first, now_ms);
            return (vec![last], repeat.next(last));
        }
        let mut times = vec![first];
        let mut next = repeat.next(first);
        let limit = self.max_times();
        while let Some(due) = next.filter(|due| *due <= now_ms && times.len() < limit) {
            times.push(due);
            next = repeat.next(due);
        }
        (times, next)
    }

    /// The most times of it that are published together.
    fn max_times(&self) -> usize {
        if self.record.meta.catch_up {
            (MAX_DUE_BYTES / self.event.stored_bytes().max(1)).clamp(1, MAX_MISSED)
        } else {
            1
        }
    }

    /// About the bytes that it adds to a batch.
    fn bytes(&self) -> usize {
        self.event.stored_bytes().saturating_mul(self.max_times())
    }

    /// The id of the event that is due at a time.
    fn event_id(&self, due: u64) -> String {
        match self.record.meta.every {
            None => self.record.id.clone(),
            Some(_) => repeated_id(&self.record.id, due),
        }
    }

    fn give_up(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.is_impossible, true) {
            tracing::error!(
                id = %self.record.id,
                topic = %self.record.meta.topic,
                reason,
                "a scheduled event cannot be published and is dropped"
            );
        }
    }
}

/// So much of a long id is in the ids that are derived from it.
const MAX_ID_START_BYTES: usize = 24;

/// The id of the event of a repeated schedule that is due at a time. A long one is cut and has its hash behind it.
fn repeated_id(id: &str, due: u64) -> String {
    let whole = format!("{id}@{due}");
    if whole.len() <= MAX_ID_BYTES {
        return whole;
    }
    let start = &id[..id.len().min(MAX_ID_START_BYTES)];
    format!("{start}-{:016x}@{due}", stable_hash(id))
}

/// How many schedules fit into a batch of so many bytes; one does.
fn count_within(schedules: &[DueSchedule], max_bytes: usize) -> usize {
    let mut bytes = 0;
    let within = schedules.iter().take_while(|schedule| {
        let fits = bytes < max_bytes;
        bytes += schedule.bytes();
        fits
    });
    within.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_repetitions_differ_and_fit() {
        let long = "x".repeat(MAX_ID_BYTES);
        let other = format!("{}y", "x".repeat(MAX_ID_BYTES - 1));
        let due = (1 << 53) - 1;
        assert_eq!(repeated_id("a", 5), "a@5");
        let ids = [
            repeated_id(&long, due),
            repeated_id(&other, due),
            repeated_id(&long, due - 1),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(Id::from_client(id).is_some(), "{id}");
            assert!(!ids[..at].contains(id), "{id}");
            assert!(id.starts_with(&long[..MAX_ID_START_BYTES]));
        }
    }
}
