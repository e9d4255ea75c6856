//! How a filter is read and written.

use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, ToJson, write_text};
use prombus_interface::{FieldFilter, Pattern};

impl<'a> FromJson<'a> for FieldFilter {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut key, mut headers, mut tags) = (None, None, None);
        scanner.object(|scanner, name| match name {
            "key" => scanner.fill(&mut key),
            "headers" => scanner.fill(&mut headers),
            "tags" => scanner.fill(&mut tags),
            _ => Err(ScanError::unknown(name, &["key", "headers", "tags"], &[])),
        })?;
        Ok(Self {
            key,
            headers: headers.unwrap_or_default(),
            tags: tags.unwrap_or_default(),
        })
    }
}

impl ToJson for FieldFilter {
    fn write_json(&self, out: &mut Vec<u8>) {
        ObjectWriter::new(out)
            .field("key", &self.key)
            .field("headers", &self.headers)
            .field("tags", &self.tags)
            .end();
    }
}

impl<'a> FromJson<'a> for Pattern {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        Self::new(&scanner.text()?).map_err(|error| ScanError::wrong(error.to_string()))
    }
}

impl ToJson for Pattern {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_text(out, self.as_str());
    }
}
