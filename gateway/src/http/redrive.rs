//! `POST /dlq/redrive`: dead letters are published to their topic again, for the group that they died in or with
//! `to: "all"` for every group. Each event that goes out names its letter in `caused_by` and has an id made from the
//! letter's, so that sending a letter twice stores one event; what was sent before is sent again only with `force`.

use super::call::{Call, forbidden};
use super::events::event_by_id;
use super::reply;
use crate::auth::Action;
use crate::denied::Denied;
use crate::said::as_said;
use axum::response::Response;
use prombus::{
    DeadLetterMarks, Find, PublishBatch, ReadLimit, Store, StoredEvent, dead_letter_topic,
    redrive_id,
};
use prombus_api::http::{Body as _, DeadLetter, FailedId, Redrive, RedriveReply};
use prombus_api::options::PublishOptions as Said;
use prombus_api::{Code, Record};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// How many letters are sent at a time where there is no rate.
const BATCH_LETTERS: u32 = 256;
/// With a rate, letters go out in about so many steps a second.
const STEPS_PER_SEC: u32 = 10;
/// How many letters are read at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 256,
    bytes: 4 << 20,
};
/// How many letters that were not sent the reply tells; the others are counted.
const MAX_TOLD: usize = 1_000;
/// The most ids that one request names.
const MAX_IDS: usize = 10_000;
/// The most causes that an event may name; the oldest are left out.
const MAX_CAUSES: usize = 64;

/// Letters that are being sent round.
struct Redriving<'a> {
    call: &'a Call,
    wanted: &'a Redrive<'a>,
    letters: Arc<str>,
    batch: PublishBatch,
    /// The letters in the batch, with their positions.
    ids: Vec<(u64, String)>,
    /// What was redriven or removed before.
    marks: DeadLetterMarks,
    reply: RedriveReply,
}

pub(super) async fn redrive(mut call: Call) -> Result<Response, Denied> {
    let body = call.json().await?;
    let wanted = Redrive::parse(&body)?;
    let letters = dead_letter_topic(&wanted.topic);
    allow(&call, &wanted.topic, &letters)?;
    if wanted.ids.as_ref().is_some_and(|ids| ids.len() > MAX_IDS) {
        let why = format!("ids: at most {MAX_IDS} at a time");
        return Err(Denied::new(Code::TooLarge, why));
    }
    // Where nothing has died yet there is nothing to send, but the topic has to be there.
    let (letters, exists) = match call.known(&letters) {
        Ok(letters) => (letters, true),
        Err(_) => {
            call.known(&wanted.topic)?;
            (letters.into(), false)
        }
    };
    let marks = if exists {
        call.gateway().bus.dead_letter_marks(&letters).await?
    } else {
        DeadLetterMarks::default()
    };
    let mut redriving = Redriving {
        call: &call,
        wanted: &wanted,
        letters,
        batch: call.gateway().bus.batch(),
        ids: Vec::new(),
        marks,
        reply: RedriveReply {
            topic: wanted.topic.to_string(),
            dry_run: wanted.dry_run,
            ..RedriveReply::default()
        },
    };
    match &wanted.ids {
        Some(ids) => redriving.named(ids, exists).await?,
        None if exists => redriving.all().await?,
        None => {}
    }
    redriving.send().await?;
    Ok(reply::json(&redriving.reply))
}

/// Whoever may write to the topic and read its dead letters, or administers the topic.
fn allow(call: &Call, topic: &str, letters: &str) -> Result<(), Denied> {
    call.check(topic, None)?;
    let may = |action, topic| call.grant.policy.may(action, topic, None);
    if may(Action::Admin, topic) {
        Ok(())
    } else if !may(Action::Publish, topic) {
        Err(forbidden(Action::Publish, topic, None))
    } else if !may(Action::Subscribe, letters) {
        Err(forbidden(Action::Subscribe, letters, None))
    } else {
        Ok(())
    }
}

impl Redriving<'_> {
    async fn named(&mut self, ids: &[Cow<'_, str>], exists: bool) -> Result<(), Denied> {
        for id in ids {
            let letter = match exists {
                true => event_by_id(&**self.store(), &self.letters, id).await?,
                false => None,
            };
            match letter.filter(|letter| !self.marks.is_removed(letter.seq())) {
                Some(letter) => self.take(&letter).await?,
                None => {
                    self.reply.matched += 1;
                    let why = format!("topic {} holds no such letter", self.letters);
                    self.fail(id, Code::UnknownId, why);
                }
            }
        }
        Ok(())
    }

    /// All letters that are there now; those that die again meanwhile are left.
    async fn all(&mut self) -> Result<(), Denied> {
        let store = self.store().clone();
        let tail = store.topic(&self.letters).map_or(0, |info| info.tail_seq);
        let mut next_seq = 1;
        while next_seq <= tail {
            let page = store.read(&self.letters, next_seq, PAGE).await?;
            for letter in page.events.iter().filter(|event| event.seq() <= tail) {
                if self.marks.is_removed(letter.seq()) {
                    continue;
                }
                self.take(letter).await?;
            }
            next_seq = page.next_seq;
        }
        Ok(())
    }

    /// Adds a letter to the batch, which is sent where it is full.
    async fn take(&mut self, letter: &StoredEvent) -> Result<(), Denied> {
        let id = letter.id();
        let read = serde_json::from_str::<DeadLetter>(letter.payload());
        // Anybody who may publish to the topic of dead letters may put letters of another there.
        if read
            .as_ref()
            .is_ok_and(|read| read.topic != self.wanted.topic)
        {
            return Ok(());
        }
        self.reply.matched += 1;
        let read = read.map_err(|error| error.to_string());
        let group = read.as_ref().map(|read| read.group.clone());
        let group = group.unwrap_or_default();
        let original = match &read {
            Ok(read) => Record::parse(read.original.get()).map_err(|refusal| refusal.message),
            Err(error) => Err(error.clone()),
        };
        let (group, original) = match original {
            Ok(original) => (group, original),
            Err(why) => {
                self.fail(&id, Code::BadJson, format!("it is no dead letter: {why}"));
                return Ok(());
            }
        };
        if !self.wanted.force
            && let Some(why) = self.was_sent_before(letter, &group, &original).await?
        {
            self.fail(&id, Code::IdConflict, why);
            return Ok(());
        }
        if self.wanted.dry_run {
            self.reply.redriven += 1;
            return Ok(());
        }
        let payload = self.wanted.payload.unwrap_or(original.payload);
        let said = self.said(&id, &group, &original);
        self.batch.add(&self.wanted.topic, payload, &as_said(&said));
        self.ids.push((letter.seq(), id.into_owned()));
        if self.ids.len() >= self.batch_letters() {
            self.send().await?;
        }
        Ok(())
    }

    /// Why sending a letter would be a loop, if it would.
    async fn was_sent_before(
        &self,
        letter: &StoredEvent,
        group: &str,
        original: &Record<'_>,
    ) -> Result<Option<String>, Denied> {
        if self.marks.is_redriven(letter.seq()) {
            return Ok(Some(already()));
        }
        let store = self.store();
        for cause in &original.caused_by {
            let found = store.find(&self.letters, Find::Id(cause)).await?;
            if found.is_some() {
                let why = format!("it was sent round before, from letter {cause}, and died again");
                return Ok(Some(format!("{why}; force sends it all the same")));
            }
        }
        if !self.wanted.dry_run {
            return Ok(None);
        }
        let sent = self.sent_id(&letter.id(), group);
        let topic: Arc<str> = self.wanted.topic.as_ref().into();
        let found = match store.topic(&topic) {
            Some(_) => store.find(&topic, Find::Id(&sent)).await?,
            None => None,
        };
        Ok(found.map(|_| already()))
    }

    /// The id under which a letter goes out, so that it goes out once; with `force` it goes out each time.
    fn sent_id(&self, letter_id: &str, group: &str) -> String {
        let nonce = self.wanted.force.then(|| self.call.gateway().now_ms());
        redrive_id(
            letter_id,
            nonce,
            Some(group).filter(|_| !self.wanted.to_all),
        )
    }

    fn said<'r>(&self, id: &str, group: &str, original: &Record<'r>) -> Said<'r> {
        let mut caused_by = original.caused_by.clone();
        caused_by.push(id.to_owned());
        caused_by.drain(..caused_by.len().saturating_sub(MAX_CAUSES));
        Said {
            id: Some(Cow::Owned(self.sent_id(id, group))),
            ts: None,
            key: original.key.clone(),
            headers: original.headers.clone(),
            tags: original.tags.clone(),
            caused_by,
            sid: original.sid.clone(),
        }
    }

    async fn send(&mut self) -> Result<(), Denied> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let topic = &self.wanted.topic;
        let count = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.call.connection.publish_in_time(topic, count).await;
        let gateway = self.call.gateway();
        let batch = std::mem::replace(&mut self.batch, gateway.bus.batch());
        let ids = std::mem::take(&mut self.ids);
        let results = gateway.bus.publish_batch(batch).await;
        let mut sent = Vec::with_capacity(ids.len());
        for ((seq, id), result) in ids.iter().zip(results) {
            match result {
                Ok(published) if published.duplicate => {
                    self.fail(id, Code::IdConflict, already());
                }
                Ok(_) => {
                    sent.push(*seq);
                    self.reply.redriven += 1;
                    gateway.metrics.topic(topic).published.increment();
                }
                Err(error) => {
                    let denied = Denied::from(error);
                    self.fail(id, denied.code, denied.message);
                }
            }
        }
        if !sent.is_empty() {
            gateway.bus.mark_redriven(&self.letters, &sent).await?;
        }
        if let Some(rate) = self.wanted.rate {
            let pause_ms = u64::from(count) * 1_000 / u64::from(rate.max(1));
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
        Ok(())
    }

    fn batch_letters(&self) -> usize {
        let steps = |rate: u32| (rate / STEPS_PER_SEC).clamp(1, BATCH_LETTERS);
        self.wanted.rate.map_or(BATCH_LETTERS, steps) as usize
    }

    fn fail(&mut self, id: &str, code: Code, why: impl Into<String>) {
        self.reply.fail(FailedId::new(id, code, why), MAX_TOLD);
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.call.gateway().bus.store()
    }
}

fn already() -> String {
    "it has been sent round already; force sends it again".to_owned()
}
