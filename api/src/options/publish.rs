//! What a publisher may say about an event.

use crate::frames::required;
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, Raw, ToJson};
use prombus_interface::schemas::{EventId, Key, Topic};
use schemars::JsonSchema;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a publisher may say about an event.
// Strings are borrowed from the text unless they have escapes.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(default)]
pub struct PublishOptions<'a> {
    /// The publisher's own id, 1 to 64 printable ASCII characters. Publishing it again stores nothing.
    #[schemars(with = "Option<EventId>")]
    pub id: Option<Cow<'a, str>>,
    /// The publisher's own time in epoch milliseconds.
    pub ts: Option<u64>,
    /// For compaction, ordering and partitioning, up to 512 bytes.
    #[schemars(with = "Option<Key>")]
    pub key: Option<Cow<'a, str>>,
    /// Names and values, up to 64 entries and 16 KiB.
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: Vec<(String, String)>,
    /// Free labels.
    pub tags: Vec<String>,
    /// Ids of the events that caused this one.
    pub caused_by: Vec<String>,
    /// Boot or session id of the publisher.
    pub sid: Option<Cow<'a, str>>,
    /// Publish only if this is the topic's last position, 0 where it never had one.
    pub expect_seq: Option<u64>,
    /// Publish only if the last event of the key is at this position; 0 where there is none.
    pub expect_key_seq: Option<u64>,
    /// Publish at this time, in epoch milliseconds.
    pub deliver_at: Option<u64>,
    /// Publish after so many milliseconds.
    pub delay_ms: Option<u64>,
    /// Publish again and again: an interval (`30s`) or a cron line with an optional time zone (`0 9 * * 1-5
    /// Europe/Berlin`).
    pub every: Option<Cow<'a, str>>,
    /// Publish also for each time that was missed while the server was down.
    pub catch_up: bool,
    /// Publish the event in other versions to other topics too, all or none.
    pub also_publish: Vec<AlsoPublish<'a>>,
}

/// An event in another version, for another topic. All else it shares with the one it is published with.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct AlsoPublish<'a> {
    /// Where to.
    #[schemars(with = "Topic")]
    pub topic: Cow<'a, str>,
    /// The payload.
    #[schemars(with = "Value")]
    pub payload: Cow<'a, str>,
}

impl<'a> PublishOptions<'a> {
    /// The names of the options.
    pub(crate) const FIELDS: &'static [&'static str] = &[
        "id",
        "ts",
        "key",
        "headers",
        "tags",
        "caused_by",
        "sid",
        "expect_seq",
        "expect_key_seq",
        "deliver_at",
        "delay_ms",
        "every",
        "catch_up",
        "also_publish",
    ];

    /// Whether the event is to be published later.
    pub fn is_scheduled(&self) -> bool {
        self.deliver_at.is_some()
            || self.delay_ms.is_some()
            || self.every.is_some()
            || self.catch_up
    }

    /// Whether the event is committed by itself: later, or together with others.
    pub fn needs_own_commit(&self) -> bool {
        self.is_scheduled() || !self.also_publish.is_empty()
    }

    /// These options, and what they do not say as `defaults` say it.
    #[must_use]
    pub fn or(mut self, defaults: &Self) -> Self {
        self.id = self.id.or_else(|| defaults.id.clone());
        self.ts = self.ts.or(defaults.ts);
        self.key = self.key.or_else(|| defaults.key.clone());
        self.sid = self.sid.or_else(|| defaults.sid.clone());
        if self.tags.is_empty() {
            self.tags.clone_from(&defaults.tags);
        }
        for (name, value) in &defaults.headers {
            if !self.headers.iter().any(|(own, _)| own == name) {
                self.headers.push((name.clone(), value.clone()));
            }
        }
        if self.caused_by.is_empty() {
            self.caused_by.clone_from(&defaults.caused_by);
        }
        self.expect_seq = self.expect_seq.or(defaults.expect_seq);
        self.expect_key_seq = self.expect_key_seq.or(defaults.expect_key_seq);
        self.deliver_at = self.deliver_at.or(defaults.deliver_at);
        self.delay_ms = self.delay_ms.or(defaults.delay_ms);
        self.every = self.every.or_else(|| defaults.every.clone());
        self.catch_up |= defaults.catch_up;
        self
    }

    /// Takes the value of a field if it is one of the options; otherwise `None`, and nothing was taken.
    #[inline]
    pub(crate) fn take(
        &mut self,
        scanner: &mut Scanner<'a>,
        name: &str,
    ) -> Option<Result<(), ScanError>> {
        Some(match name {
            "id" => scanner.fill(&mut self.id),
            "ts" => scanner.fill(&mut self.ts),
            "key" => scanner.fill(&mut self.key),
            "headers" => scanner.fill(&mut self.headers),
            "tags" => scanner.fill(&mut self.tags),
            "caused_by" => scanner.fill(&mut self.caused_by),
            "sid" => scanner.fill(&mut self.sid),
            "expect_seq" => scanner.fill(&mut self.expect_seq),
            "expect_key_seq" => scanner.fill(&mut self.expect_key_seq),
            "deliver_at" => scanner.fill(&mut self.deliver_at),
            "delay_ms" => scanner.fill(&mut self.delay_ms),
            "every" => scanner.fill(&mut self.every),
            "catch_up" => scanner.fill(&mut self.catch_up),
            "also_publish" => scanner.fill(&mut self.also_publish),
            _ => return None,
        })
    }

    /// Writes the options as fields of an object.
    pub(crate) fn write(&self, object: &mut ObjectWriter<'_>) {
        object
            .field("id", &self.id)
            .field("ts", &self.ts)
            .field("key", &self.key)
            .field("headers", &self.headers)
            .field("tags", &self.tags)
            .field("caused_by", &self.caused_by)
            .field("sid", &self.sid)
            .field("expect_seq", &self.expect_seq)
            .field("expect_key_seq", &self.expect_key_seq)
            .field("deliver_at", &self.deliver_at)
            .field("delay_ms", &self.delay_ms)
            .field("every", &self.every)
            .field("catch_up", &self.catch_up)
            .field("also_publish", &self.also_publish);
    }
}

impl<'a> FromJson<'a> for PublishOptions<'a> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut options = Self::default();
        if scanner.null() {
            return Ok(options);
        }
        scanner.object(|scanner, name| match options.take(scanner, name) {
            Some(taken) => taken,
            None => Err(ScanError::unknown(name, Self::FIELDS, &[])),
        })?;
        Ok(options)
    }
}

impl ToJson for PublishOptions<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        self.write(&mut object);
        object.end();
    }

    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

impl<'a> FromJson<'a> for AlsoPublish<'a> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut topic, mut payload) = (None, None);
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "payload" => {
                payload = Some(scanner.raw()?);
                Ok(())
            }
            _ => Err(ScanError::unknown(name, &["topic", "payload"], &[])),
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            payload: Cow::Borrowed(required(payload, "payload")?),
        })
    }
}

impl ToJson for AlsoPublish<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        ObjectWriter::new(out)
            .field("topic", &self.topic)
            .field("payload", &Raw(self.payload.as_bytes()))
            .end();
    }
}
