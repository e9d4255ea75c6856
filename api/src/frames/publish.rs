//! PUBLISH: an event for a topic. The same object, without op, is an element of an ACK's `publish`.

use super::required;
use crate::options::PublishOptions;
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, Raw, ToJson};
use prombus_interface::schemas::Topic;
use schemars::JsonSchema;
use serde_json::Value;
use std::borrow::Cow;

/// An event to be published.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct Publish<'a> {
    /// Where to.
    #[schemars(with = "Topic")]
    pub topic: Cow<'a, str>,
    /// The payload.
    // As it was written. Only where it ends is known; whether it is JSON is for the bus to see.
    #[schemars(with = "Value")]
    pub payload: &'a str,
    /// What else the publisher says.
    #[schemars(rename = "opts", default)]
    pub options: PublishOptions<'a>,
}

/// Appends a PUBLISH frame. The payload has to be JSON.
pub fn write_publish(out: &mut Vec<u8>, publish: &Publish<'_>, corr: Option<&str>) {
    let mut object = ObjectWriter::new(out);
    object.field("op", "PUBLISH");
    publish.write(&mut object);
    object.field("corr", &corr).end();
}

impl<'a> Publish<'a> {
    #[inline]
    pub(super) fn read(
        scanner: &mut Scanner<'a>,
        corr: &mut Option<Cow<'a, str>>,
    ) -> Result<Self, ScanError> {
        let mut topic = None;
        let mut payload = None;
        let mut options = PublishOptions::default();
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "payload" => {
                payload = Some(scanner.raw()?);
                Ok(())
            }
            "opts" => scanner.fill(&mut options),
            "corr" => scanner.fill(corr),
            "op" => scanner.ignore(),
            _ => {
                let known = ["topic", "payload", "opts", "corr"];
                Err(ScanError::unknown(name, &known, PublishOptions::FIELDS))
            }
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            payload: required(payload, "payload")?,
            options,
        })
    }

    fn write(&self, object: &mut ObjectWriter<'_>) {
        object
            .field("topic", &self.topic)
            .field("payload", &Raw(self.payload.as_bytes()))
            .field("opts", &self.options);
    }
}

impl<'a> FromJson<'a> for Publish<'a> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        Self::read(scanner, &mut None)
    }
}

impl ToJson for Publish<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        self.write(&mut object);
        object.end();
    }
}
