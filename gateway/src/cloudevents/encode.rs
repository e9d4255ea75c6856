//! From stored events to CloudEvents in JSON.

use super::decode::{BATCHED, STRUCTURED, essence};
use super::{BASE64_HEADER, JSON_VALUES_HEADER, NO_DATA_HEADER, PREFIX, SOURCE_HEADER, TRACING};
use crate::http::{Body, Response};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, header};
use prombus::{EventFields, StoredEvent};

/// Attributes that are written from fields of the event, or before all others.
const FIRST: [&str; 7] = [
    "specversion",
    "id",
    "source",
    "type",
    "subject",
    "time",
    "data",
];

/// How a client wants events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// As they are stored.
    Records,
    /// Each as a CloudEvent.
    CloudEvents,
    /// As a list of CloudEvents.
    CloudEventsBatch,
}

/// An attribute that is not stored with the event.
#[derive(Debug, Clone)]
pub(crate) struct Extension {
    pub(crate) name: &'static str,
    /// Its value as JSON.
    pub(crate) json: String,
}

impl Format {
    /// What a request accepts. Only a client that names CloudEvents gets them; the first format that it names wins.
    pub(crate) fn accepted(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let ranges = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter(|range| !is_refused(range));
        let mut named = ranges.filter_map(|range| match essence(range).as_str() {
            STRUCTURED => Some(Self::CloudEvents),
            BATCHED => Some(Self::CloudEventsBatch),
            _ => None,
        });
        named.next().unwrap_or(Self::Records)
    }

    /// Whether events go out as they are stored.
    pub(crate) fn is_records(self) -> bool {
        self == Self::Records
    }
}

/// A reply with a list of CloudEvents.
pub(crate) fn batch_reply(list: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(list));
    let content_type = HeaderValue::from_static(BATCHED);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// Appends events as a list of CloudEvents.
pub(crate) fn write_batch<'a>(
    out: &mut Vec<u8>,
    events: impl IntoIterator<Item = (&'a StoredEvent, Vec<Extension>)>,
) {
    out.push(b'[');
    for (at, (event, extensions)) in events.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_event(out, event, &extensions);
    }
    out.push(b']');
}

/// Appends an event as a CloudEvent, with extensions of the caller's. They replace those of the same names.
pub(crate) fn write_event(out: &mut Vec<u8>, event: &StoredEvent, extensions: &[Extension]) {
    let fields = EventFields::of(event);
    let header = |name: &str| fields.headers.get(name).map(String::as_str);
    let mut object = ObjectWriter::begin(out);
    object.text("specversion", "1.0");
    object.text("id", header("ce-id").unwrap_or(&event.id()));
    match header(SOURCE_HEADER) {
        Some(source) => object.text("source", source),
        None => object.text("source", &format!("/topics/{}", event.topic())),
    }
    object.text("type", header("ce-type").unwrap_or(event.topic()));
    if let Some(key) = event.key().filter(|key| !key.is_empty()) {
        object.text("subject", &key);
    }
    let time = header("ce-time").map(str::to_owned);
    if let Some(time) = time.or_else(|| time_text(event.ts())) {
        object.text("time", &time);
    }
    if header("ce-specversion").is_none() {
        object.text("datacontenttype", "application/json");
    }
    let json_values: Vec<&str> = header(JSON_VALUES_HEADER)
        .map(|names| names.split(',').collect())
        .unwrap_or_default();
    for (name, value) in &fields.headers {
        let attribute = attribute_of(name);
        let is_replaced = |name| extensions.iter().any(|extension| extension.name == name);
        match attribute.filter(|name| !is_replaced(*name)) {
            Some(name) if json_values.contains(&name) => object.json_value(name, value),
            Some(name) => object.text(name, value),
            None => {}
        }
    }
    for extension in extensions {
        object.raw(extension.name, &extension.json);
    }
    if header(BASE64_HEADER).is_some() {
        object.raw("data_base64", event.payload());
    } else if header(NO_DATA_HEADER).is_none() {
        object.raw("data", event.payload());
    }
    object.end();
}

/// Epoch milliseconds as RFC 3339; `None` where no calendar reaches them.
pub(super) fn time_text(ts: u64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(ts).ok()?).ok()?;
    Some(format!("{time:.3}"))
}

/// Whether a range of media types has the weight 0.
fn is_refused(range: &str) -> bool {
    let mut parameters = range
        .split(';')
        .skip(1)
        .filter_map(|part| part.split_once('='));
    parameters.any(|(name, value)| {
        name.trim().eq_ignore_ascii_case("q")
            && value
                .trim()
                .parse::<f32>()
                .is_ok_and(|weight| weight <= 0.0)
    })
}

/// The attribute that a header of an event is; `None` where it is none, or is written elsewhere.
fn attribute_of(header: &str) -> Option<&str> {
    if TRACING.contains(&header) {
        return Some(header);
    }
    let name = header.strip_prefix(PREFIX)?;
    let is_name_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_attribute = !name.is_empty() && name.bytes().all(is_name_byte);
    // Such as a header `ce-traceparent`, which a WebSocket client may send beside the other one.
    let is_written = FIRST.contains(&name) || TRACING.contains(&name);
    (is_attribute && !is_written).then_some(name)
}

/// A JSON object that is being written. The names of its fields have no need of escapes.
struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> ObjectWriter<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        let is_empty = true;
        Self { out, is_empty }
    }

    fn text(&mut self, name: &str, value: &str) {
        self.raw(name, &serde_json::Value::from(value).to_string());
    }

    /// A value that should be JSON. Headers can be written by anyone, so it is looked at.
    fn json_value(&mut self, name: &str, value: &str) {
        match serde_json::from_str::<serde_json::Value>(value) {
            Ok(parsed) if parsed.is_number() || parsed.is_boolean() => self.raw(name, value.trim()),
            _ => self.text(name, value),
        }
    }

    /// A value that is JSON.
    fn raw(&mut self, name: &str, json: &str) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out.extend_from_slice(json.as_bytes());
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
