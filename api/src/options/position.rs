//! Places in a topic: where a new group begins, where a cursor is set to, where a reader starts.

use crate::frames::required;
use crate::scan::{Member, ScanError, Scanner};
use crate::write::ObjectWriter;
use schemars::JsonSchema;

/// A place in a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Position {
    /// What is published from now on.
    #[default]
    Latest,
    /// The oldest event that is kept.
    Earliest,
    /// The first event at or after this time, in epoch milliseconds.
    Ts(u64),
    /// The event after the one with this id.
    AfterId(String),
    /// The event at this position.
    Seq(u64),
}

/// The fields that together name a place.
#[derive(Debug, Default, JsonSchema)]
pub(crate) struct PositionParts {
    /// Where to; a ts, afterId or seq alone says enough.
    #[schemars(extend("enum" = ["latest", "earliest", "ts", "afterId", "seq", null]))]
    pub(crate) from: Option<String>,
    /// The first event at or after this epoch millisecond.
    pub(crate) ts: Option<u64>,
    /// The event after this one.
    #[schemars(rename = "afterId")]
    pub(crate) after_id: Option<String>,
    /// This position.
    pub(crate) seq: Option<u64>,
}

impl Position {
    /// The word in `from`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Earliest => "earliest",
            Self::Ts(_) => "ts",
            Self::AfterId(_) => "afterId",
            Self::Seq(_) => "seq",
        }
    }

    /// Writes the place as fields of an object.
    pub(crate) fn write(&self, object: &mut ObjectWriter<'_>) {
        object.field("from", self.word());
        match self {
            Self::Latest | Self::Earliest => object,
            Self::Ts(ts) => object.field("ts", ts),
            Self::AfterId(id) => object.field("afterId", id),
            Self::Seq(seq) => object.field("seq", seq),
        };
    }
}

impl PositionParts {
    /// The names of the fields.
    pub(crate) const FIELDS: [&'static str; 4] = ["from", "ts", "afterId", "seq"];

    /// Takes the value of a field if it is one of these; otherwise `None`, and nothing was taken.
    pub(crate) fn take(
        &mut self,
        scanner: &mut Scanner<'_>,
        name: &str,
    ) -> Option<Result<(), ScanError>> {
        Some(match name {
            "from" => scanner.fill(&mut self.from),
            "ts" => scanner.fill(&mut self.ts),
            "afterId" => scanner.fill(&mut self.after_id),
            "seq" => scanner.fill(&mut self.seq),
            _ => return None,
        })
    }

    /// The place that is named, `None` where none is. A time, id or position alone says enough without `from`: to
    /// start at the latest event instead would pass over what was asked for.
    pub(crate) fn position(self) -> Result<Option<Position>, ScanError> {
        let Some(from) = self.from else {
            return match (self.ts, self.after_id, self.seq) {
                (None, None, None) => Ok(None),
                (Some(ts), None, None) => Ok(Some(Position::Ts(ts))),
                (None, Some(id), None) => Ok(Some(Position::AfterId(id))),
                (None, None, Some(seq)) => Ok(Some(Position::Seq(seq))),
                _ => Err(wrong("missing; says which of ts, afterId and seq applies")),
            };
        };
        let position = match from.as_str() {
            "latest" => Some(Position::Latest),
            "earliest" => Some(Position::Earliest),
            "ts" => self.ts.map(Position::Ts),
            "afterId" => self.after_id.map(Position::AfterId),
            "seq" => self.seq.map(Position::Seq),
            _ => return Err(wrong("expected latest, earliest, ts, afterId or seq")),
        };
        match position {
            Some(position) => Ok(Some(position)),
            None => Err(ScanError::wrong("missing, required by from".to_owned()).within(&from)),
        }
    }
}

/// Among the fields of an object, a place is what its four fields name together.
impl Member<'_> for Option<Position> {
    type Slot = PositionParts;

    const FIELDS: &'static [&'static str] = &PositionParts::FIELDS;

    fn take(
        slot: &mut PositionParts,
        scanner: &mut Scanner<'_>,
        _: &str,
        name: &str,
    ) -> Option<Result<(), ScanError>> {
        slot.take(scanner, name)
    }

    fn finish(slot: PositionParts, _: &str) -> Result<Self, ScanError> {
        slot.position()
    }

    fn write(&self, object: &mut ObjectWriter<'_>, _: &str) {
        if let Some(position) = self {
            position.write(object);
        }
    }
}

/// One that has to be there.
impl Member<'_> for Position {
    type Slot = PositionParts;

    const FIELDS: &'static [&'static str] = &PositionParts::FIELDS;

    fn take(
        slot: &mut PositionParts,
        scanner: &mut Scanner<'_>,
        _: &str,
        name: &str,
    ) -> Option<Result<(), ScanError>> {
        slot.take(scanner, name)
    }

    fn finish(slot: PositionParts, _: &str) -> Result<Self, ScanError> {
        required(slot.position()?, "from")
    }

    fn write(&self, object: &mut ObjectWriter<'_>, _: &str) {
        self.write(object);
    }
}

fn wrong(reason: &str) -> ScanError {
    ScanError::wrong(reason.to_owned()).within("from")
}
