//! ACK, NACK and MODACK: what becomes of delivered events. The bodies of `POST /ack`, `/nack` and `/modack` are the
//! same objects without op.

use super::{Publish, required};
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, Raw, ToJson};
use prombus_interface::schemas::{EventId, Group, Topic};
use schemars::JsonSchema;
use std::borrow::Cow;
use std::slice;

/// The events that are meant: `id`, or several as `ids`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ids<'a> {
    /// One event.
    One(Cow<'a, str>),
    /// Any number of them.
    Many(Vec<Cow<'a, str>>),
}

/// Events are done. With `publish`, both happen or neither.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("oneOf" = [{"required": ["id"]}, {"required": ["ids"]}]))]
pub struct Ack<'a> {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: Cow<'a, str>,
    /// The group.
    #[schemars(with = "Group")]
    pub group: Cow<'a, str>,
    /// The events.
    #[schemars(flatten, with = "IdParts")]
    pub ids: Ids<'a>,
    /// What is published atomically with it.
    #[schemars(default)]
    pub publish: Vec<Publish<'a>>,
}

/// Events failed and come again.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("oneOf" = [{"required": ["id"]}, {"required": ["ids"]}]))]
pub struct Nack<'a> {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: Cow<'a, str>,
    /// The group.
    #[schemars(with = "Group")]
    pub group: Cow<'a, str>,
    /// The events.
    #[schemars(flatten, with = "IdParts")]
    pub ids: Ids<'a>,
    /// Why, for the history of a dead letter.
    pub reason: Option<Cow<'a, str>>,
    /// When they come again; after a backoff where it does not say.
    pub delay_ms: Option<u64>,
}

/// Events take longer.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(extend("oneOf" = [{"required": ["id"]}, {"required": ["ids"]}]))]
pub struct Modack<'a> {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: Cow<'a, str>,
    /// The group.
    #[schemars(with = "Group")]
    pub group: Cow<'a, str>,
    /// The events.
    #[schemars(flatten, with = "IdParts")]
    pub ids: Ids<'a>,
    /// The deadline from now, where at least a second is given; else as long as the member's leases are.
    pub extend_ms: Option<u64>,
}

/// Appends an ACK frame.
pub fn write_ack(out: &mut Vec<u8>, ack: &Ack<'_>, corr: Option<&str>) {
    let mut object = ObjectWriter::new(out);
    object.field("op", "ACK");
    ack.write(&mut object);
    object.field("corr", &corr).end();
}

/// Appends an ACK frame whose `publish` is a list that was spelled before.
pub fn write_ack_publish(
    out: &mut Vec<u8>,
    topic: &str,
    group: &str,
    ids: &Ids<'_>,
    publish: &[u8],
    corr: Option<&str>,
) {
    let mut object = ObjectWriter::new(out);
    object.field("op", "ACK");
    write_named(&mut object, topic, group, ids);
    object
        .field("publish", &Raw(publish))
        .field("corr", &corr)
        .end();
}

/// Appends a NACK frame.
pub fn write_nack(out: &mut Vec<u8>, nack: &Nack<'_>, corr: Option<&str>) {
    let mut object = ObjectWriter::new(out);
    object.field("op", "NACK");
    nack.write(&mut object);
    object.field("corr", &corr).end();
}

/// Appends a MODACK frame.
pub fn write_modack(out: &mut Vec<u8>, modack: &Modack<'_>, corr: Option<&str>) {
    let mut object = ObjectWriter::new(out);
    object.field("op", "MODACK");
    modack.write(&mut object);
    object.field("corr", &corr).end();
}

impl<'a> Ids<'a> {
    /// All of them.
    pub fn as_slice(&self) -> &[Cow<'a, str>] {
        match self {
            Self::One(id) => slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }
}

/// The fields that all three have.
#[derive(Default)]
struct Named<'a> {
    topic: Option<Cow<'a, str>>,
    group: Option<Cow<'a, str>>,
    ids: IdParts<'a>,
}

/// The fields of [`Ids`].
#[derive(Default, JsonSchema)]
struct IdParts<'a> {
    /// The event.
    #[schemars(with = "Option<EventId>")]
    id: Option<Cow<'a, str>>,
    /// The events, where they are several.
    #[schemars(length(max = 10_000))]
    ids: Option<Vec<Cow<'a, str>>>,
}

impl<'a> Named<'a> {
    #[inline]
    fn take(
        &mut self,
        scanner: &mut Scanner<'a>,
        name: &str,
        corr: &mut Option<Cow<'a, str>>,
        own: &[&str],
    ) -> Result<(), ScanError> {
        match name {
            "topic" => scanner.fill(&mut self.topic),
            "group" => scanner.fill(&mut self.group),
            "id" => scanner.fill(&mut self.ids.id),
            "ids" => scanner.fill(&mut self.ids.ids),
            "corr" => scanner.fill(corr),
            "op" => scanner.ignore(),
            _ => {
                let known = [&["topic", "group", "id", "ids", "corr"], own].concat();
                Err(ScanError::unknown(name, &known, &[]))
            }
        }
    }

    #[inline]
    fn whole(self) -> Result<(Cow<'a, str>, Cow<'a, str>, Ids<'a>), ScanError> {
        let ids = match (self.ids.id, self.ids.ids) {
            (Some(id), None) => Ids::One(id),
            (None, Some(ids)) => Ids::Many(ids),
            (None, None) => return Err(ScanError::missing("id")),
            (Some(_), Some(_)) => {
                return Err(
                    ScanError::wrong("not allowed together with id".to_owned()).within("ids")
                );
            }
        };
        let topic = required(self.topic, "topic")?;
        let group = required(self.group, "group")?;
        Ok((topic, group, ids))
    }
}

impl<'a> Ack<'a> {
    #[inline]
    pub(super) fn read(
        scanner: &mut Scanner<'a>,
        corr: &mut Option<Cow<'a, str>>,
    ) -> Result<Self, ScanError> {
        let mut named = Named::default();
        let mut publish = Vec::new();
        scanner.object(|scanner, name| match name {
            "publish" => scanner.fill(&mut publish),
            _ => named.take(scanner, name, corr, &["publish"]),
        })?;
        let (topic, group, ids) = named.whole()?;
        Ok(Self {
            topic,
            group,
            ids,
            publish,
        })
    }

    fn write(&self, object: &mut ObjectWriter<'_>) {
        write_named(object, &self.topic, &self.group, &self.ids);
        object.field("publish", &self.publish);
    }
}

impl<'a> Nack<'a> {
    pub(super) fn read(
        scanner: &mut Scanner<'a>,
        corr: &mut Option<Cow<'a, str>>,
    ) -> Result<Self, ScanError> {
        let mut named = Named::default();
        let (mut reason, mut delay_ms) = (None, None);
        scanner.object(|scanner, name| match name {
            "reason" => scanner.fill(&mut reason),
            "delay_ms" => scanner.fill(&mut delay_ms),
            _ => named.take(scanner, name, corr, &["reason", "delay_ms"]),
        })?;
        let (topic, group, ids) = named.whole()?;
        Ok(Self {
            topic,
            group,
            ids,
            reason,
            delay_ms,
        })
    }

    fn write(&self, object: &mut ObjectWriter<'_>) {
        write_named(object, &self.topic, &self.group, &self.ids);
        object
            .field("reason", &self.reason)
            .field("delay_ms", &self.delay_ms);
    }
}

impl<'a> Modack<'a> {
    pub(super) fn read(
        scanner: &mut Scanner<'a>,
        corr: &mut Option<Cow<'a, str>>,
    ) -> Result<Self, ScanError> {
        let mut named = Named::default();
        let mut extend_ms = None;
        scanner.object(|scanner, name| match name {
            "extend_ms" => scanner.fill(&mut extend_ms),
            _ => named.take(scanner, name, corr, &["extend_ms"]),
        })?;
        let (topic, group, ids) = named.whole()?;
        Ok(Self {
            topic,
            group,
            ids,
            extend_ms,
        })
    }

    fn write(&self, object: &mut ObjectWriter<'_>) {
        write_named(object, &self.topic, &self.group, &self.ids);
        object.field("extend_ms", &self.extend_ms);
    }
}

fn write_named(object: &mut ObjectWriter<'_>, topic: &str, group: &str, ids: &Ids<'_>) {
    object.field("topic", topic).field("group", group);
    match ids {
        Ids::One(id) => object.field("id", id),
        Ids::Many(ids) => object.list("ids", ids),
    };
}

/// The bodies of the HTTP routes.
macro_rules! bodies {
    ($($body:ident),+) => {$(
        impl<'a> FromJson<'a> for $body<'a> {
            fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
                Self::read(scanner, &mut None)
            }
        }

        impl ToJson for $body<'_> {
            fn write_json(&self, out: &mut Vec<u8>) {
                let mut object = ObjectWriter::new(out);
                self.write(&mut object);
                object.end();
            }
        }
    )+};
}

bodies!(Ack, Nack, Modack);
