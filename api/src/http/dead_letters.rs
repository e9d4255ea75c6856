//! `/dlq`: dead letters, and sending them round again.

use super::bulk::is_zero;
use super::query::{Query, QueryWriter};
use super::settle::FailedId;
use crate::code::Code;
use crate::error::ParseError;
use crate::frames::required;
use crate::record::Record;
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, Raw, ToJson};
use prombus_interface::schemas::{Group, Topic};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The payload of a dead letter. `GET /dlq` replies with a page of events that have it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    /// Where the event came from.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The group that could not handle it.
    #[schemars(with = "Group")]
    pub group: String,
    /// The whole record.
    // As it is stored; `Record::parse` takes it apart.
    #[schemars(with = "Record")]
    pub original: Box<RawValue>,
    /// Why the last delivery failed.
    pub err: String,
    /// When it was given up, in epoch milliseconds.
    pub ts: u64,
    /// How often it was delivered.
    pub attempts: u32,
    /// The last of these deliveries, oldest first.
    #[serde(default)]
    pub history: Vec<Attempt>,
}

/// One delivery that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Who had it.
    pub member: String,
    /// When it was delivered, in epoch milliseconds.
    pub start: u64,
    /// When it failed.
    pub end: u64,
    /// Why.
    pub reason: String,
}

/// The body of `POST /dlq/redrive`: which dead letters are sent round again.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transform = add_all)]
pub struct Redrive<'a> {
    /// The topic that the events came from.
    #[schemars(with = "Topic")]
    pub topic: Cow<'a, str>,
    /// The dead letters; all of them where none are named.
    #[schemars(length(max = 10_000))]
    pub ids: Option<Vec<Cow<'a, str>>>,
    /// Only say what would happen.
    #[schemars(default)]
    pub dry_run: bool,
    /// At most this many events per second.
    #[schemars(range(min = 1))]
    pub rate: Option<u32>,
    /// Goes out instead of the original's payload; only for a single dead letter.
    #[schemars(with = "Option<Value>")]
    pub payload: Option<&'a str>,
    /// Also what has been sent round before.
    #[schemars(default)]
    pub force: bool,
    /// Whether only the group it died in gets it, or every group of the topic.
    #[schemars(rename = "to", with = "Option<RedriveTo>", extend("default" = "group"))]
    pub to_all: bool,
}

/// Where no ids are named, `all` may say so.
fn add_all(schema: &mut Schema) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let all = json!({"const": true, "description": "All letters, said aloud."});
        properties.insert("all".to_owned(), all);
    }
}

/// Who gets an event that is sent round again.
#[derive(JsonSchema)]
#[schemars(inline, rename_all = "lowercase")]
#[allow(dead_code, reason = "it is what a field looks like on the wire")]
enum RedriveTo {
    Group,
    All,
}

/// The query of `DELETE /dlq`: which dead letters go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoveLettersQuery {
    /// The topic that the events came from.
    pub topic: String,
    /// Which of its dead letters.
    pub which: WhichLetters,
}

/// Which dead letters are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichLetters {
    /// `ids`, with commas between.
    Ids(Vec<String>),
    /// `redriven=1`: those that were sent to their topic again.
    Redriven,
    /// `all=1`.
    All,
}

/// The reply of `DELETE /dlq`: what became of dead letters that were to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RemovedLetters {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// How many dead letters were removed.
    pub removed: u64,
    /// Ids that no dead letter has.
    pub unknown: Vec<String>,
}

impl RemoveLettersQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        let ids = query.get("ids").map(|ids| {
            let ids = ids.split(',').filter(|id| !id.is_empty());
            ids.map(str::to_owned).collect()
        });
        let is_set = |name| Ok::<_, ParseError>(query.flag(name)? == Some(true));
        let which = match (ids, is_set("redriven")?, is_set("all")?) {
            (Some(ids), false, false) => WhichLetters::Ids(ids),
            (None, true, false) => WhichLetters::Redriven,
            (None, false, true) => WhichLetters::All,
            _ => {
                let message = "one of ids, redriven and all is required";
                return Err(ParseError::new(Code::BadFrame, message));
            }
        };
        Ok(Self {
            topic: query.required("topic")?.to_owned(),
            which,
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        let mut query = QueryWriter::default();
        query.push("topic", &self.topic);
        match &self.which {
            WhichLetters::Ids(ids) => query.push("ids", &ids.join(",")),
            WhichLetters::Redriven => query.push("redriven", "1"),
            WhichLetters::All => query.push("all", "1"),
        };
        query.finish()
    }
}

/// Appends a stored dead letter, with whether it was redriven as its last field.
pub fn write_dead_letter(out: &mut Vec<u8>, event_json: &[u8], is_redriven: bool) {
    let open = event_json.strip_suffix(b"}").unwrap_or(event_json);
    out.extend_from_slice(open);
    out.extend_from_slice(if is_redriven {
        b",\"redriven\":true}"
    } else {
        b",\"redriven\":false}"
    });
}

/// The reply of `POST /dlq/redrive`: what became of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RedriveReply {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// How many dead letters were meant.
    pub matched: u64,
    /// How many were sent round again.
    pub redriven: u64,
    /// The dead letters that were not, and why.
    pub failed: Vec<FailedId>,
    /// How many were left out of `failed`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_left_out: u64,
}

impl RedriveReply {
    /// Counts a dead letter that was not sent, and reports it while there are fewer than `report_limit`.
    pub fn fail(&mut self, failed: FailedId, report_limit: usize) {
        if self.failed.len() < report_limit {
            self.failed.push(failed);
        } else {
            self.failed_left_out += 1;
        }
    }
}

const REDRIVE_FIELDS: &[&str] = &[
    "topic", "ids", "all", "dry_run", "rate", "payload", "force", "to",
];

impl<'a> FromJson<'a> for Redrive<'a> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut topic, mut ids, mut payload) = (None, None::<Vec<_>>, None);
        let (mut rate, mut all) = (None, None);
        let (mut dry_run, mut force) = (false, false);
        let mut to = None::<Cow<'_, str>>;
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "ids" => scanner.fill(&mut ids),
            "all" => scanner.fill(&mut all),
            "dry_run" => scanner.fill(&mut dry_run),
            "rate" => scanner.fill(&mut rate),
            "payload" => {
                payload = Some(scanner.raw()?);
                Ok(())
            }
            "force" => scanner.fill(&mut force),
            "to" => scanner.fill(&mut to),
            _ => Err(ScanError::unknown(name, REDRIVE_FIELDS, &[])),
        })?;
        let wrong =
            |field: &str, reason: &str| Err(ScanError::wrong(reason.to_owned()).within(field));
        match (&ids, all) {
            (Some(_), Some(true)) => return wrong("all", "ids name the letters already"),
            (None, Some(false)) => return Err(ScanError::missing("ids")),
            _ => {}
        }
        if payload.is_some() && ids.as_ref().is_none_or(|ids| ids.len() != 1) {
            return wrong("payload", "an edited payload is for a single id");
        }
        let to_all = match to.as_deref() {
            None | Some("group") => false,
            Some("all") => true,
            Some(_) => return wrong("to", "expected \"group\" or \"all\""),
        };
        if rate == Some(0) {
            return wrong("rate", "must be at least 1");
        }
        Ok(Self {
            topic: required(topic, "topic")?,
            ids,
            dry_run,
            rate,
            payload,
            force,
            to_all,
        })
    }
}

impl ToJson for Redrive<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object.field("topic", &self.topic);
        match &self.ids {
            // An empty list is none of them, which is not the same as leaving it out.
            Some(ids) => object.list("ids", ids),
            None => object.field("all", &true),
        };
        object
            .field("dry_run", &self.dry_run)
            .field("rate", &self.rate)
            .field(
                "payload",
                &self.payload.map(|payload| Raw(payload.as_bytes())),
            )
            .field("force", &self.force)
            .field("to", &self.to_all.then_some("all"))
            .end();
    }
}
