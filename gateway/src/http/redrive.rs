//! `POST /dlq/redrive`: dead letters are published to their topic again, for the group that they died in or with
//! `to: "all"` for every group. Each event that goes out names its dead letter in `caused_by` and has an id made from the
//! dead letter's, so that sending a dead letter twice stores one event; what was sent before is sent again only with `force`.

use super::call::{Call, forbidden};
use super::events::event_by_id;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::to_bus::to_bus_publish_options;
use prombus::{
    DeadLetterMarks, Find, PublishBatch, ReadFrom, ReadLimit, Store, StoredEvent,
    dead_letter_topic, redrive_id,
};
use prombus_api::http::{Body as _, DeadLetter, FailedId, Redrive, RedriveReply};
use prombus_api::options::PublishOptions as WireOptions;
use prombus_api::{Code, Record};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// How many dead letters are sent at a time where there is no rate.
const BATCH_LETTERS: u32 = 256;
/// With a rate, dead letters go out in about so many steps a second.
const STEPS_PER_SEC: u32 = 10;
/// How many dead letters are read at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 256,
    bytes: 4 << 20,
};
/// The most failed dead letters that the reply lists; the others are counted.
const MAX_REPORTED: usize = 1_000;
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
    /// The dead letters in the batch, with their positions.
    ids: Vec<(u64, String)>,
    /// What was redriven or removed before.
    marks: DeadLetterMarks,
    reply: RedriveReply,
}

pub(super) async fn redrive(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let wanted = Redrive::parse(&body)?;
    let letters = dead_letter_topic(&wanted.topic);
    allow(&call, &wanted.topic, &letters)?;
    if wanted.ids.as_ref().is_some_and(|ids| ids.len() > MAX_IDS) {
        let message = format!("ids: at most {MAX_IDS} at a time");
        return Err(ApiError::new(Code::TooLarge, message));
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

/// Requires publish on the topic and subscribe on its dead letters, or admin on the topic.
fn allow(call: &Call, topic: &str, letters: &str) -> Result<(), ApiError> {
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
    async fn named(&mut self, ids: &[Cow<'_, str>], exists: bool) -> Result<(), ApiError> {
        for id in ids {
            let letter = if exists {
                event_by_id(&**self.store(), &self.letters, id).await?
            } else {
                None
            };
            match letter.filter(|letter| !self.marks.is_removed(letter.seq())) {
                Some(letter) => self.take(&letter).await?,
                None => {
                    self.reply.matched += 1;
                    let message = format!("no such dead letter in topic {}", self.letters);
                    self.fail(id, Code::UnknownId, message);
                }
            }
        }
        Ok(())
    }

    /// All dead letters that are there now; those that die again meanwhile are left.
    async fn all(&mut self) -> Result<(), ApiError> {
        let store = self.store().clone();
        let tail = store.topic(&self.letters).map_or(0, |info| info.tail_seq);
        let mut next_seq = 1;
        while next_seq <= tail {
            let page = store
                .read(&self.letters, ReadFrom::Seq(next_seq), PAGE)
                .await?;
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

    /// Adds a dead letter to the batch, which is sent where it is full.
    async fn take(&mut self, letter: &StoredEvent) -> Result<(), ApiError> {
        let id = letter.id();
        let read = serde_json::from_str::<DeadLetter>(letter.payload());
        // Anybody who may publish to the topic of dead letters may put dead letters of another there.
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
            Ok(read) => Record::parse(read.original.get()).map_err(|error| error.message),
            Err(error) => Err(error.clone()),
        };
        let (group, original) = match original {
            Ok(original) => (group, original),
            Err(reason) => {
                self.fail(&id, Code::BadJson, format!("not a dead letter: {reason}"));
                return Ok(());
            }
        };
        if !self.wanted.force
            && let Some(reason) = self.was_sent_before(letter, &group, &original).await?
        {
            self.fail(&id, Code::IdConflict, reason);
            return Ok(());
        }
        if self.wanted.dry_run {
            self.reply.redriven += 1;
            return Ok(());
        }
        let payload = self.wanted.payload.unwrap_or(original.payload);
        let options = self.publish_options(&id, &group, &original);
        self.batch.add(
            &self.wanted.topic,
            payload,
            &to_bus_publish_options(&options),
        );
        self.ids.push((letter.seq(), id.into_owned()));
        if self.ids.len() >= self.batch_letters() {
            self.send().await?;
        }
        Ok(())
    }

    /// Why sending a dead letter would be a loop, if it would.
    async fn was_sent_before(
        &self,
        letter: &StoredEvent,
        group: &str,
        original: &Record<'_>,
    ) -> Result<Option<String>, ApiError> {
        if self.marks.is_redriven(letter.seq()) {
            return Ok(Some(already()));
        }
        let store = self.store();
        for cause in &original.caused_by {
            let found = store.find(&self.letters, Find::Id(cause)).await?;
            if found.is_some() {
                let message = format!("already redriven from {cause} and dead-lettered again");
                return Ok(Some(format!("{message}; pass force to redrive it anyway")));
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

    /// The id under which a dead letter goes out, so that it goes out once; with `force` it goes out each time.
    fn sent_id(&self, letter_id: &str, group: &str) -> String {
        let nonce = self.wanted.force.then(|| self.call.gateway().now_ms());
        redrive_id(
            letter_id,
            nonce,
            Some(group).filter(|_| !self.wanted.to_all),
        )
    }

    fn publish_options<'r>(&self, id: &str, group: &str, original: &Record<'r>) -> WireOptions<'r> {
        let mut caused_by = original.caused_by.clone();
        caused_by.push(id.to_owned());
        caused_by.drain(..caused_by.len().saturating_sub(MAX_CAUSES));
        WireOptions {
            id: Some(Cow::Owned(self.sent_id(id, group))),
            ts: None,
            key: original.key.clone(),
            headers: original.headers.clone(),
            tags: original.tags.clone(),
            caused_by,
            sid: original.sid.clone(),
            ..WireOptions::default()
        }
    }

    async fn send(&mut self) -> Result<(), ApiError> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let topic = &self.wanted.topic;
        let count = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.call.connection.wait_to_publish(topic, count).await;
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
                    let error = ApiError::from(error);
                    self.fail(id, error.code, error.message);
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

    fn fail(&mut self, id: &str, code: Code, reason: impl Into<String>) {
        self.reply
            .fail(FailedId::new(id, code, reason), MAX_REPORTED);
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.call.gateway().bus.store()
    }
}

fn already() -> String {
    "already redriven; pass force to redrive it again".to_owned()
}
