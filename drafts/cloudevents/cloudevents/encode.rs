//! From stored events to CloudEvents in JSON.

use super::{BASE64_HEADER, JSON_VALUES_HEADER, NO_DATA_HEADER, PREFIX, TRACING};
use axum::http::{HeaderMap, HeaderValue, header};
use prombus::{EventFields, StoredEvent};

/// The media type of one event.
pub(crate) const STRUCTURED_TYPE: HeaderValue =
    HeaderValue::from_static("application/cloudevents+json");
/// The media type of a list of events.
pub(crate) const BATCH_TYPE: HeaderValue =
    HeaderValue::from_static("application/cloudevents-batch+json");

/// How a client wants events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// As they are stored.
    Records,
    /// As CloudEvents.
    CloudEvents,
}

impl Format {
    /// What a request accepts. Only who names CloudEvents gets them.
    pub(crate) fn accepted(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let mut types = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(|range| range.split(';').next().unwrap_or_default().trim());
        let is_wanted = |name: &str| {
            name.eq_ignore_ascii_case("application/cloudevents+json")
                || name.eq_ignore_ascii_case("application/cloudevents-batch+json")
        };
        match types.any(is_wanted) {
            true => Self::CloudEvents,
            false => Self::Records,
        }
    }
}

/// Appends an event as a CloudEvent in JSON, with `extensions` of its own.
pub(crate) fn write_event(out: &mut Vec<u8>, event: &StoredEvent, extensions: &[(&str, u64)]) {
    let fields = EventFields::of(event);
    let header = |name: &str| fields.headers.get(name).map(String::as_str);
    let mut object = Object::begin(out);
    object.text("specversion", header("ce-specversion").unwrap_or("1.0"));
    object.text("id", &event.id());
    match header("ce-source") {
        Some(source) => object.text("source", source),
        None => object.text("source", &format!("/topics/{}", event.topic())),
    }
    object.text("type", header("ce-type").unwrap_or(event.topic()));
    if let Some(key) = event.key() {
        object.text("subject", &key);
    }
    let time = header("ce-time").map(str::to_owned);
    if let Some(time) = time.or_else(|| time_text(event.ts())) {
        object.text("time", &time);
    }
    let is_from_elsewhere = header("ce-specversion").is_some();
    if !is_from_elsewhere {
        object.text("datacontenttype", "application/json");
    }
    let json_values: Vec<&str> = header(JSON_VALUES_HEADER)
        .map(|names| names.split(',').collect())
        .unwrap_or_default();
    for (name, value) in &fields.headers {
        let Some(name) = attribute_of(name) else {
            continue;
        };
        match json_values.contains(&name) {
            true => object.raw(name, value),
            false => object.text(name, value),
        }
    }
    for (name, value) in extensions {
        object.raw(name, &value.to_string());
    }
    if header(BASE64_HEADER).is_some() {
        object.raw("data_base64", event.payload());
    } else if header(NO_DATA_HEADER).is_none() {
        object.raw("data", event.payload());
    }
    object.end();
}

/// The attribute that a header of an event is, unless it has a place of its own.
fn attribute_of(header: &str) -> Option<&str> {
    if TRACING.contains(&header) {
        return Some(header);
    }
    let name = header.strip_prefix(PREFIX)?;
    let is_named_above = matches!(name, "specversion" | "source" | "type" | "time" | "id" | "subject" | "data");
    let is_attribute = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    (is_attribute && !name.is_empty() && !is_named_above).then_some(name)
}

/// Epoch milliseconds as RFC 3339; `None` where no calendar reaches them.
pub(super) fn time_text(ts: u64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(ts).ok()?).ok()?;
    Some(format!("{time:.3}"))
}

/// A JSON object that is being written.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        let is_empty = true;
        Self { out, is_empty }
    }

    fn text(&mut self, name: &str, value: &str) {
        self.raw(name, &serde_json::Value::from(value).to_string());
    }

    /// A value that is JSON already.
    fn raw(&mut self, name: &str, value: &str) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        // Names have nothing to escape.
        self.out.extend_from_slice(format!("\"{name}\":").as_bytes());
        self.out.extend_from_slice(value.as_bytes());
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
