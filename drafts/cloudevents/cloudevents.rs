//! CloudEvents 1.0 over HTTP: what comes in as one becomes an event of the bus, and any event goes out as one.
//!
//! | CloudEvents | event |
//! |---|---|
//! | `id` | `id` |
//! | `time` | `ts`; header `ce-time` too where milliseconds in UTC do not say it exactly |
//! | `subject` | `key` |
//! | `data` | `payload`; text that is not JSON is a string, and bytes are one in base64 with the header `ce-data_base64` |
//! | `traceparent`, `tracestate` | headers of the same names |
//! | every other attribute | header `ce-<name>` |
//!
//! So what came in goes out again without loss. An event that was published otherwise has `/topics/<topic>` as its
//! source and its topic as its type.

mod decode;
mod encode;

pub(crate) use decode::{CloudEvent, Mode, mode_of};
pub(crate) use encode::{BATCH_TYPE, Format, STRUCTURED_TYPE, write_event};

/// What headers of events that came in as CloudEvents begin with.
const PREFIX: &str = "ce-";
/// The payload is a string of bytes in base64. No attribute has an underscore in its name.
const BASE64_HEADER: &str = "ce-data_base64";
/// The event came without data.
const NO_DATA_HEADER: &str = "ce-no_data";
/// The names of extensions whose values are numbers or booleans in JSON.
const JSON_VALUES_HEADER: &str = "ce-json_values";
/// Extensions that are headers of their own everywhere.
const TRACING: [&str; 2] = ["traceparent", "tracestate"];

#[cfg(test)]
mod tests;
