//! Which events a group wants.

use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, ToJson};
use std::collections::BTreeMap;

/// A filter. An event matches when everything that is named here fits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// The event has a key, and the key matches this pattern.
    pub key: Option<String>,
    /// The event has all these headers with exactly these values.
    pub headers: BTreeMap<String, String>,
    /// The event has all these tags.
    pub tags: Vec<String>,
}

impl<'a> FromJson<'a> for Filter {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut filter = Self::default();
        scanner.object(|scanner, name| match name {
            "key" => scanner.fill(&mut filter.key),
            "headers" => scanner.fill(&mut filter.headers),
            "tags" => scanner.fill(&mut filter.tags),
            _ => Err(ScanError::unknown(name, &["key", "headers", "tags"], &[])),
        })?;
        Ok(filter)
    }
}

impl ToJson for Filter {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object
            .field("key", &self.key)
            .field("headers", &self.headers)
            .field("tags", &self.tags)
            .end();
    }
}
