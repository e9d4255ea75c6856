//! Ages as people write them: `30s`, `12h`, `3d`.

use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ToJson, write_text};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// The units, largest first.
const UNITS: &[(&str, u64)] = &[
    ("w", 7 * 24 * 60 * 60 * 1_000),
    ("d", 24 * 60 * 60 * 1_000),
    ("h", 60 * 60 * 1_000),
    ("m", 60 * 1_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(inline, transparent)]
pub struct Age {
    /// In milliseconds.
    #[schemars(with = "String", regex(pattern = "^[0-9]+(ms|s|m|h|d|w)$"))]
    pub ms: u64,
}

impl Age {
    /// Reads a whole number and its unit, `None` where it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let ms = number.parse::<u64>().ok()?.checked_mul(*unit_ms)?;
        Some(Self { ms })
    }
}

/// In the largest unit that gives a whole number.
impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |unit_ms: u64| self.ms.is_multiple_of(unit_ms) && self.ms > 0;
        let unit = UNITS.iter().find(|(_, unit_ms)| fits(*unit_ms));
        let (name, unit_ms) = unit.unwrap_or(&("ms", 1));
        write!(f, "{}{name}", self.ms / unit_ms)
    }
}

impl Serialize for Age {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Age {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(EXPECTED))
    }
}

impl<'a> FromJson<'a> for Age {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let text = scanner.text()?;
        Self::parse(&text).ok_or_else(|| ScanError::wrong(EXPECTED.to_owned()))
    }
}

impl ToJson for Age {
    fn write_json(&self, out: &mut Vec<u8>) {
        write_text(out, &self.to_string());
    }
}

const EXPECTED: &str = "expected an age like 30s, 12h or 3d (ms, s, m, h, d, w)";
