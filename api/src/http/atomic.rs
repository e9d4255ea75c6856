//! `POST /publish`: events, to one topic or several, that are published as a whole or not at all.

use super::PublishedEvent;
use crate::frames::Publish;
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, ToJson};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Events that are stored as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct PublishAtomic<'a> {
    /// The events, in the order in which they are stored.
    #[schemars(length(min = 1, max = 10_000))]
    pub publish: Vec<Publish<'a>>,
}

/// Where they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PublishAtomicReply {
    /// In the order of the request.
    pub published: Vec<PublishedEvent>,
}

impl<'a> FromJson<'a> for PublishAtomic<'a> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut publish = None;
        scanner.object(|scanner, name| match name {
            "publish" => scanner.fill(&mut publish),
            _ => Err(ScanError::unknown(name, &["publish"], &[])),
        })?;
        let publish = publish.ok_or_else(|| ScanError::missing("publish"))?;
        Ok(Self { publish })
    }
}

impl ToJson for PublishAtomic<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        ObjectWriter::new(out).list("publish", &self.publish).end();
    }
}
