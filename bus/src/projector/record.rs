//! What is stored of a projector: how far it has read, in one keyed record that is committed with what it emitted.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The form this code writes. A record of a later form is refused rather than misread.
const RECORD_VERSION: u32 = 1;

const KEY_PREFIX: &str = "projector/";

/// A projector's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProjectorRecord {
    /// The form of the record.
    pub(super) version: u32,
    /// The last position of the input that is folded.
    pub(super) position: u64,
    /// The id of the event there. Another one at the same position belongs to a topic that was made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_id: Option<String>,
    /// How many events were emitted.
    pub(super) emitted: u64,
    /// How many events nothing could be made of.
    #[serde(rename = "refused")]
    pub(super) rejected: u64,
    /// How many events retention took before they were read.
    pub(super) skipped: u64,
    /// The output's tail was here before the record was written. One that ends earlier was made again.
    pub(super) output_tail: u64,
}

impl Default for ProjectorRecord {
    fn default() -> Self {
        Self {
            version: RECORD_VERSION,
            position: 0,
            last_id: None,
            emitted: 0,
            rejected: 0,
            skipped: 0,
            output_tail: 0,
        }
    }
}

/// The key of a projector's record.
pub(super) fn record_key(name: &str) -> Arc<str> {
    format!("{KEY_PREFIX}{name}").into()
}

impl ProjectorRecord {
    pub(super) fn to_bytes(&self) -> Arc<[u8]> {
        // Strings and numbers are always written.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Reads a record, or says why it is none.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.version > RECORD_VERSION {
            let found = record.version;
            return Err(format!("format {found} is newer than {RECORD_VERSION}"));
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_round_trip(
            numbers in any::<[u64; 5]>(),
            last_id in prop::option::of("[ -~]{1,64}"),
        ) {
            let [position, emitted, rejected, skipped, output_tail] = numbers;
            let record = ProjectorRecord {
                position, last_id, emitted, rejected, skipped, output_tail,
                ..ProjectorRecord::default()
            };
            prop_assert_eq!(ProjectorRecord::from_bytes(&record.to_bytes()), Ok(record));
        }
    }

    #[test]
    fn a_later_form_is_refused() {
        let later =
            r#"{"version":2,"position":1,"emitted":0,"refused":0,"skipped":0,"output_tail":0}"#;
        assert!(ProjectorRecord::from_bytes(later.as_bytes()).is_err());
        assert!(ProjectorRecord::from_bytes(b"{").is_err());
    }
}
