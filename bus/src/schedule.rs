//! Scheduled publishing: events that are stored apart from their topic and published when they are due, once or again
//! and again.
//!
//! A schedule is an event of a topic of the bus's own, under its id as the key, with the due time as its ts. Publishing
//! at the due time and forgetting the schedule are one atomic batch, which expects the schedule to be the last event of
//! its key: whoever is first, of several nodes or of somebody who removes it, wins, and losing is no error. In memory
//! there is only an index of due times, which is made from that topic and follows it.

mod index;
mod publish_due;
mod record;
mod repeat;
mod scheduler;

pub(crate) use record::SCHEDULES_TOPIC;
pub(crate) use scheduler::Scheduler;

use crate::bus::Bus;
use crate::core::Core;
use crate::error::{
    IdConflict, InvalidField, LimitReached, PublishError, ScheduleError, UnknownSchedule,
};
use crate::partition::partition_of_draft;
use crate::publish::{MAX_TS, PublishOptions, checked_payload, draft};
pub use prombus_interface::Schedule;
use prombus_store::LockExt;
use prombus_store::{
    Batch, Draft, EventOutcome, ExpectedPosition, GeneratedId, Id, ReadFrom, ReadLimit,
    StoredEvent, TAG_BITS,
};
use record::{Meta, Record, schedules_config};
use repeat::Repeat;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How often a change of a schedule is tried while others change it too.
const MAX_TRIES: usize = 32;
/// The most schedules that one call looks at for a page.
const MAX_LOOKED_AT: usize = 10_000;
/// The most topics whose scheduled events are counted apart until somebody takes the counts.
const MAX_COUNTED_TOPICS: usize = 65_536;
/// How many of them are read at a time.
const LOOK: ReadLimit = ReadLimit {
    events: 512,
    bytes: 1 << 20,
};

/// What is known of an event that was scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    /// Its id: that of the event, or what the ids of a repeated one begin with.
    pub id: Id,
    /// When it is due, in epoch milliseconds.
    pub due: u64,
    /// Whether it was scheduled before under this id: then this is the first one, and nothing was stored.
    pub duplicate: bool,
}

/// A schedule that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSchedule {
    /// Its id.
    pub id: String,
    /// Where its event goes.
    pub topic: String,
    /// When it is due next, in epoch milliseconds.
    pub due: u64,
    /// How it is repeated.
    pub every: Option<String>,
    /// Whether missed times are published too.
    pub catch_up: bool,
    /// The event's key.
    pub key: Option<String>,
    /// The event's payload, as JSON text.
    pub payload: String,
}

/// Some of the schedules that wait, in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchedulePage {
    /// The schedules. There may be none although there are more pages.
    pub schedules: Vec<PendingSchedule>,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
}

/// What the handles of a bus and its scheduler share.
pub(crate) struct Schedules {
    /// How many wait, as the scheduler knows it.
    pending: AtomicU64,
    /// Events that were published because they were due.
    published: AtomicU64,
    /// The same by topic, since somebody last took it.
    by_topic: Mutex<BTreeMap<Arc<str>, u64>>,
    /// Makes the ids of this bus differ from those of others in the same millisecond.
    id_seed: u64,
}

impl Default for Schedules {
    fn default() -> Self {
        Self {
            pending: AtomicU64::new(0),
            published: AtomicU64::new(0),
            by_topic: Mutex::default(),
            id_seed: foldhash::fast::RandomState::default().hash_one(0),
        }
    }
}

impl Bus {
    /// Stores an event apart from its topic and publishes it when it is due: from then on it is an event like any other,
    /// with the id that is returned here (a repeated one under ids that are derived from it and from the due time) and
    /// the due time as its ts. What is stored is durable when this returns.
    ///
    /// An id that waits already schedules nothing; with another topic or payload it is an
    /// [`IdConflict`]. `ts`, `expect_seq` and `expect_key_seq` are not for scheduled events. A topic's schema is the one
    /// that it has when the event is scheduled.
    pub async fn schedule(
        &self,
        topic: &str,
        payload: &str,
        options: &PublishOptions<'_>,
        schedule: &Schedule<'_>,
    ) -> Result<Scheduled, PublishError> {
        let core = self.core();
        if core.is_closed() {
            return Err(PublishError::Closed);
        }
        let named = core.topics.checked(topic)?;
        let target = named.topic;
        for (field, is_given) in [
            ("ts", options.ts.is_some()),
            ("expect_seq", options.expect_seq.is_some()),
            ("expect_key_seq", options.expect_key_seq.is_some()),
        ] {
            if is_given {
                return Err(InvalidField::new(field, "not allowed for a scheduled event").into());
            }
        }
        let limits = &core.options.limits;
        let payload = checked_payload(limits, topic, payload, |_| false)?.text;
        let mut event = draft(limits, &payload, options)?;
        let partitions = named.traits.partitions;
        event.partition = partition_of_draft(&event, partitions, || core.number());
        // Now, because at the due time there is no caller to report to.
        let schemas = match named.traits.schemas {
            Some(generation) => Some(core.schemas.of(&target, generation)?),
            None => None,
        };
        let stamped = match &schemas {
            Some(schemas) => schemas.stamp(&event, false)?,
            None => Cow::Borrowed(event.headers),
        };
        event.headers = &stamped;
        let due = due(schedule, core.now_ms())?;
        core.topics.check(&target)?;
        let limit = core.options.max_schedules as u64;
        if core.schedules.pending() >= limit {
            let name = "max_schedules";
            return Err(LimitReached { name, limit }.into());
        }
        let meta = Meta {
            topic: topic.to_owned(),
            key: options.key.map(str::to_owned),
            every: schedule.every.map(str::to_owned),
            catch_up: schedule.catch_up,
        };
        core.schedules.store(core, &event, &meta, due).await
    }

    /// Schedules that wait, of one topic or of all, in the order of their ids, behind `after`. It looks at a limited
    /// number of them, so a page may have fewer than `limit` although there are more.
    pub async fn schedules(
        &self,
        topic: Option<&str>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<SchedulePage, ScheduleError> {
        let core = self.core();
        let mut page = SchedulePage::default();
        if core.store.topic(SCHEDULES_TOPIC).is_none() {
            return Ok(page);
        }
        let mut after = after.map(str::to_owned);
        let mut looked_at = 0;
        while looked_at < MAX_LOOKED_AT {
            let from = ReadFrom::Key(after.as_deref());
            let read = core.store.read(&SCHEDULES_TOPIC.into(), from, LOOK);
            let events = read.await?.events;
            if events.is_empty() {
                return Ok(page);
            }
            for event in &events {
                looked_at += 1;
                after = event.key().map(Into::into);
                let found = PendingSchedule::of(event);
                let is_wanted =
                    |found: &PendingSchedule| topic.is_none_or(|topic| topic == found.topic);
                page.schedules.extend(found.filter(is_wanted));
                if page.schedules.len() >= limit {
                    page.next = after;
                    return Ok(page);
                }
            }
        }
        page.next = after;
        Ok(page)
    }

    /// A schedule that waits.
    pub async fn pending_schedule(&self, id: &str) -> Result<PendingSchedule, ScheduleError> {
        let found = latest(self.core(), id).await?;
        let found = found.as_ref().and_then(PendingSchedule::of);
        found.ok_or_else(|| UnknownSchedule { id: id.into() }.into())
    }

    /// Removes a schedule and returns it. One that is due at the same moment is removed or published, not both; what was
    /// published or removed already is unknown.
    pub async fn unschedule(&self, id: &str) -> Result<PendingSchedule, ScheduleError> {
        let core = self.core();
        for _ in 0..MAX_TRIES {
            let found = latest(core, id).await?;
            let waiting = found.as_ref().and_then(PendingSchedule::of);
            let (Some(found), Some(waiting)) = (found, waiting) else {
                return Err(UnknownSchedule { id: id.into() }.into());
            };
            let mut batch = Batch::new();
            record::forget(&mut batch, id, found.seq());
            let receipt = core.store.commit(batch).await?;
            match receipt.events.first() {
                Some(EventOutcome::Stored(_)) => return Ok(waiting),
                // It was published, removed or, where it is repeated, set to its next time.
                _ => continue,
            }
        }
        Err(ScheduleError::Busy { id: id.into() })
    }

    /// How many events were published because they were due, by topic, since this was last called.
    pub fn take_scheduled_counts(&self) -> BTreeMap<Arc<str>, u64> {
        let by_topic = &self.core().schedules.by_topic;
        std::mem::take(&mut *by_topic.guard())
    }

    /// How many schedules wait, and how many events were published because they were due since the bus was opened.
    pub fn schedule_counts(&self) -> (u64, u64) {
        let schedules = &self.core().schedules;
        (
            schedules.pending(),
            schedules.published.load(Ordering::Relaxed),
        )
    }
}

impl Schedules {
    /// Events were published because they were due.
    fn count_published(&self, published: &[(Arc<str>, u64)]) {
        let sum = published.iter().map(|(_, count)| count).sum();
        self.published.fetch_add(sum, Ordering::Relaxed);
        let mut by_topic = self.by_topic.guard();
        for (topic, count) in published {
            if by_topic.len() < MAX_COUNTED_TOPICS || by_topic.contains_key(topic) {
                *by_topic.entry(topic.clone()).or_default() += count;
            }
        }
    }

    fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    /// Stores a schedule under its id, or under one that is made here.
    async fn store(
        &self,
        core: &Core,
        event: &Draft<'_>,
        meta: &Meta,
        due: u64,
    ) -> Result<Scheduled, PublishError> {
        let topic: Arc<str> = SCHEDULES_TOPIC.into();
        core.topics.ensure_as(&topic, schedules_config);
        let headers = meta.with_headers(event.headers);
        let mut id = event.id.unwrap_or_else(|| self.new_id(core));
        let mut expected = 0;
        for _ in 0..MAX_TRIES {
            let mut batch = Batch::new();
            batch.publish(
                &topic,
                &Draft {
                    id: None,
                    ts: Some(due),
                    key: Some(id.as_str()),
                    headers: &headers,
                    tombstone: false,
                    expected: ExpectedPosition {
                        seq: None,
                        key_seq: Some(expected),
                    },
                    ..*event
                },
            );
            let receipt = core.store.commit(batch).await?;
            match receipt.events.first() {
                Some(EventOutcome::Stored(_)) => {
                    let duplicate = false;
                    return Ok(Scheduled { id, due, duplicate });
                }
                Some(EventOutcome::SeqMismatch(_)) if event.id.is_none() => {
                    id = self.new_id(core);
                    continue;
                }
                Some(EventOutcome::SeqMismatch(_)) => {}
                // It may have been made on another node since it was asked for.
                _ => {
                    core.topics.forget(&topic);
                    core.topics.ensure_as(&topic, schedules_config);
                    continue;
                }
            }
            let found = latest(core, id.as_str())
                .await
                .map_err(PublishError::from)?;
            if let Some(waiting) = found.as_ref().and_then(PendingSchedule::of) {
                let is_same = waiting.topic == meta.topic && waiting.payload == event.payload;
                if !is_same {
                    return Err(IdConflict {
                        topic: meta.topic.as_str().into(),
                        id: id.to_string(),
                        seq: 0,
                    }
                    .into());
                }
                return Ok(Scheduled {
                    id,
                    due: waiting.due,
                    duplicate: true,
                });
            }
            // What was published or removed under this id may be scheduled again.
            expected = match found {
                Some(gone) if expected != gone.seq() => gone.seq(),
                _ => 0,
            };
        }
        Err(ScheduleError::Busy {
            id: id.as_str().into(),
        }
        .into())
    }

    /// An id of the form that the bus makes, with position 0, which is no event's: so no topic takes it for one of its
    /// own that is still to come. Should there be one like it, another is made.
    fn new_id(&self, core: &Core) -> Id {
        /// An odd factor runs through all numbers before one comes again.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let number = self
            .id_seed
            .wrapping_add(core.number().wrapping_mul(SPREAD));
        GeneratedId {
            ms: core.now_ms(),
            tag: (number >> 32) as u32 & ((1 << TAG_BITS) - 1),
            seq: 0,
        }
        .to_id()
    }
}

impl PendingSchedule {
    fn of(event: &StoredEvent) -> Option<Self> {
        let Record { id, meta, .. } = Record::of(event)?;
        Some(Self {
            id,
            topic: meta.topic,
            due: event.ts(),
            every: meta.every,
            catch_up: meta.catch_up,
            key: meta.key,
            payload: event.payload().to_owned(),
        })
    }
}

/// When an event that is scheduled now is due first.
fn due(schedule: &Schedule<'_>, now_ms: u64) -> Result<u64, InvalidField> {
    let start = match (schedule.deliver_at, schedule.delay_ms) {
        (Some(_), Some(_)) => {
            return Err(InvalidField::new("delay_ms", "deliver_at is given too"));
        }
        (Some(at), None) => Some(("deliver_at", at)),
        (None, Some(delay_ms)) => Some(("delay_ms", now_ms.saturating_add(delay_ms))),
        (None, None) => None,
    };
    if let Some((field, at)) = start.filter(|(_, at)| *at > MAX_TS) {
        let reason =
            format!("{at} exceeds {MAX_TS}, the largest integer that every JSON reader keeps");
        return Err(InvalidField::new(field, reason));
    }
    let start = start.map(|(_, at)| at);
    match (schedule.every, start) {
        (Some(every), _) => {
            let repeat = Repeat::parse(every)?;
            let first = repeat.first(start, now_ms).filter(|due| *due <= MAX_TS);
            first.ok_or_else(|| InvalidField::new("every", "it is never due"))
        }
        (None, Some(_)) if schedule.catch_up => {
            Err(InvalidField::new("catch_up", "only with every"))
        }
        (None, Some(at)) => Ok(at),
        (None, None) => Err(InvalidField::new(
            "deliver_at",
            "one of deliver_at, delay_ms and every is needed",
        )),
    }
}

/// The last event of a schedule, if there is one.
async fn latest(core: &Core, id: &str) -> Result<Option<StoredEvent>, ScheduleError> {
    if core.store.topic(SCHEDULES_TOPIC).is_none() {
        return Ok(None);
    }
    Ok(core.store.latest_event(&SCHEDULES_TOPIC.into(), id).await?)
}

#[cfg(test)]
mod tests;
