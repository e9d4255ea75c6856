//! `POST /publish/:topic`: one payload, or many as lines.

use super::query::Query;
use crate::error::ParseError;
use crate::frames::required;
use crate::options::PublishOptions;
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, Raw, ToJson};
use prombus_interface::schemas::{EventId, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The reply to one payload: where its event is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishReply {
    /// The event's id.
    #[schemars(with = "EventId")]
    pub id: String,
    /// Its position.
    pub seq: u64,
    /// Its time in epoch milliseconds.
    pub ts: u64,
    /// Where it is.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The topic held this id already: nothing was stored, this is the first event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub duplicate: bool,
    /// What the reply promises: `fsync`, `os`, or what the store really does.
    pub durability: String,
    /// What `also_publish` published with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishReply>,
}

/// The reply to a batch of CloudEvents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BatchReply {
    /// What became of the events, in their order.
    pub events: Vec<PublishReply>,
}

/// A payload with what its publisher says about it: the body or a line of `?envelope=1`, and a line of an import, which
/// takes a record's `id` and `ts` and leaves out its position.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub struct Envelope<'a> {
    /// The payload.
    #[schemars(with = "serde_json::Value")]
    pub payload: &'a str,
    /// What else the publisher says, as fields beside the payload.
    #[schemars(flatten)]
    pub options: PublishOptions<'a>,
}

/// What a publisher says in the query: `key id ts sid tags`, what it expects, and when
/// the event is to be published. Tags are given one by one or with commas between.
pub fn publish_query<'a>(query: &'a Query<'_>) -> Result<PublishOptions<'a>, ParseError> {
    let tags = query.all("tags").flat_map(|tags| tags.split(','));
    Ok(PublishOptions {
        id: query.get("id").map(Cow::Borrowed),
        ts: query.number("ts")?,
        key: query.get("key").map(Cow::Borrowed),
        sid: query.get("sid").map(Cow::Borrowed),
        expect_seq: query.number("expect_seq")?,
        expect_key_seq: query.number("expect_key_seq")?,
        deliver_at: query.number("deliver_at")?,
        delay_ms: query.number("delay_ms")?,
        every: query.get("every").map(Cow::Borrowed),
        catch_up: query.flag("catch_up")?.unwrap_or(false),
        tags: tags
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned)
            .collect(),
        ..PublishOptions::default()
    })
}

/// Whether a header of a request, by its name in lower case, becomes a header of the event. No others ever do, for
/// they carry tokens and cookies.
pub fn is_event_header(name: &str) -> bool {
    name.starts_with("x-") || matches!(name, "traceparent" | "tracestate")
}

impl<'a> FromJson<'a> for Envelope<'a> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut payload = None;
        let mut options = PublishOptions::default();
        scanner.object(|scanner, name| match name {
            "payload" => {
                payload = Some(scanner.raw()?);
                Ok(())
            }
            _ => match options.take(scanner, name) {
                Some(taken) => taken,
                // An import takes whole records, whose position is not the importer's to choose.
                None if matches!(name, "topic" | "seq" | "partition") => scanner.ignore(),
                None => {
                    let known = [&["payload"], PublishOptions::FIELDS].concat();
                    Err(ScanError::unknown(name, &known, &[]))
                }
            },
        })?;
        let payload = required(payload, "payload")?;
        Ok(Self { payload, options })
    }
}

impl ToJson for Envelope<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object.field("payload", &Raw(self.payload.as_bytes()));
        self.options.write(&mut object);
        object.end();
    }
}
