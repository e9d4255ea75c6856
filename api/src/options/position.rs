//! Places in a topic: where a new group begins, where a cursor is set to, where a reader starts.

use crate::frames::required;
use crate::scan::{Member, ScanError, Scanner};
use crate::write::ObjectWriter;
use prombus_interface::StartAt;
use schemars::JsonSchema;

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

/// The word in `from`.
pub(crate) fn word(place: &StartAt) -> &'static str {
    match place {
        StartAt::Latest => "latest",
        StartAt::Earliest => "earliest",
        StartAt::Ts(_) => "ts",
        StartAt::AfterId(_) => "afterId",
        StartAt::Seq(_) => "seq",
    }
}

/// Writes a place as fields of an object.
pub(crate) fn write_place(place: &StartAt, object: &mut ObjectWriter<'_>) {
    object.field("from", word(place));
    match place {
        StartAt::Latest | StartAt::Earliest => object,
        StartAt::Ts(ts) => object.field("ts", ts),
        StartAt::AfterId(id) => object.field("afterId", id),
        StartAt::Seq(seq) => object.field("seq", seq),
    };
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
    pub(crate) fn position(self) -> Result<Option<StartAt>, ScanError> {
        let Some(from) = self.from else {
            return match (self.ts, self.after_id, self.seq) {
                (None, None, None) => Ok(None),
                (Some(ts), None, None) => Ok(Some(StartAt::Ts(ts))),
                (None, Some(id), None) => Ok(Some(StartAt::AfterId(id))),
                (None, None, Some(seq)) => Ok(Some(StartAt::Seq(seq))),
                _ => Err(wrong("missing; says which of ts, afterId and seq applies")),
            };
        };
        let position = match from.as_str() {
            "latest" => Some(StartAt::Latest),
            "earliest" => Some(StartAt::Earliest),
            "ts" => self.ts.map(StartAt::Ts),
            "afterId" => self.after_id.map(StartAt::AfterId),
            "seq" => self.seq.map(StartAt::Seq),
            _ => return Err(wrong("expected latest, earliest, ts, afterId or seq")),
        };
        match position {
            Some(position) => Ok(Some(position)),
            None => Err(ScanError::wrong("missing, required by from".to_owned()).within(&from)),
        }
    }
}

/// Among the fields of an object, a place is what its four fields name together.
impl Member<'_> for Option<StartAt> {
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
            write_place(position, object);
        }
    }
}

/// One that has to be there.
impl Member<'_> for StartAt {
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
        write_place(self, object);
    }
}

fn wrong(reason: &str) -> ScanError {
    ScanError::wrong(reason.to_owned()).within("from")
}
