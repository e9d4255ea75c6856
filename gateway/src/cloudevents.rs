//! CloudEvents 1.0: a CloudEvent becomes an event of the bus, and any event of the bus becomes a CloudEvent.
//!
//! | CloudEvents | event |
//! |---|---|
//! | `id` | `id`; one that the bus does not take is hashed, and the header `ce-id` has it |
//! | `time` | `ts`; the header `ce-time` too where milliseconds in UTC do not say it exactly |
//! | `subject` | `key` |
//! | `data` | `payload`; text is a string, and bytes are one in base64 with the header `ce-data_base64` |
//! | `traceparent`, `tracestate` | headers of the same names |
//! | every other attribute | header `ce-<name>` |
//!
//! What came in as a CloudEvent goes out again without loss. An event that was published otherwise has `/topics/<topic>`
//! as its source and its topic as its type.

mod attributes;
mod decode;
mod encode;
mod header_value;

pub(crate) use decode::{CloudEvent, Mode, in_batch, mode_of};
pub(crate) use encode::{Extension, Format, batch_reply, write_batch, write_event};

/// What the headers of events that came in as CloudEvents begin with.
const PREFIX: &str = "ce-";
/// The payload is a string of bytes in base64. No attribute has an underscore in its name.
const BASE64_HEADER: &str = "ce-data_base64";
/// The event came without data.
const NO_DATA_HEADER: &str = "ce-no_data";
/// The names of extensions whose values are numbers or booleans in JSON.
const JSON_VALUES_HEADER: &str = "ce-json_values";
/// The header with the attribute that, together with the id, tells CloudEvents apart.
pub(crate) const SOURCE_HEADER: &str = "ce-source";
/// Extensions that have the same name as headers everywhere.
const TRACING: [&str; 2] = ["traceparent", "tracestate"];

/// Whether a header of an event is a CloudEvent's attribute by the same name.
pub(crate) fn is_tracing(header: &str) -> bool {
    TRACING.contains(&header)
}

#[cfg(test)]
mod tests;
