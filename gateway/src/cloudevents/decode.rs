//! From the HTTP binding, binary, structured or batched, to what the bus publishes.

use super::attributes::Attributes;
use super::{PREFIX, TRACING, header_value};
use crate::api_error::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::{HeaderMap, header};
use prombus_api::Code;
use prombus_api::options::PublishOptions;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The media type of one event in JSON.
pub(super) const STRUCTURED: &str = "application/cloudevents+json";
/// The media type of a list of events in JSON.
pub(super) const BATCHED: &str = "application/cloudevents-batch+json";
/// What the media types of all event formats begin with.
const ANY_FORMAT: &str = "application/cloudevents";

/// How events come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Attributes are headers, the body is the data.
    Binary,
    /// The body is one event in JSON.
    Structured,
    /// The body is a list of them.
    Batched,
}

/// An event as the bus publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloudEvent {
    /// What happened.
    pub(crate) event_type: String,
    /// JSON text.
    pub(crate) payload: String,
    /// Its other fields.
    pub(crate) options: PublishOptions<'static>,
}

/// The data of an event.
#[derive(Debug)]
pub(super) enum Data {
    /// JSON text; a string where the data is text.
    Json(String),
    /// A JSON string of bytes in base64.
    Base64(String),
    /// There is none.
    Absent,
}

type Fields = BTreeMap<String, Box<RawValue>>;

/// How a request brings CloudEvents; `None` where it brings none. An event format other than JSON is an error, because
/// its body would be taken for a payload.
pub(crate) fn mode_of(headers: &HeaderMap) -> Result<Option<Mode>, ApiError> {
    let content_type = content_type(headers).unwrap_or_default();
    Ok(match essence(content_type).as_str() {
        STRUCTURED => Some(Mode::Structured),
        BATCHED => Some(Mode::Batched),
        other if other.starts_with(ANY_FORMAT) => {
            let message = format!("event format {other} is not supported; use {STRUCTURED}");
            return Err(bad(message));
        }
        _ if headers.contains_key("ce-specversion") => Some(Mode::Binary),
        _ => None,
    })
}

impl CloudEvent {
    /// Reads the events of a request.
    pub(crate) fn read(
        mode: Mode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Vec<Self>, ApiError> {
        match mode {
            Mode::Binary => Ok(vec![binary(headers, body)?]),
            Mode::Structured => Ok(vec![structured(parse(body)?)?]),
            Mode::Batched => {
                let events: Vec<Fields> = parse(body)?;
                let events = events.into_iter().enumerate();
                let events = events
                    .map(|(at, event)| structured(event).map_err(|error| in_batch(at, error)));
                events.collect()
            }
        }
    }
}

/// An error of one event of a batch, which its number names.
pub(crate) fn in_batch(at: usize, error: ApiError) -> ApiError {
    ApiError {
        message: format!("event {at}: {}", error.message),
        ..error
    }
}

pub(super) fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(Code::BadFrame, message)
}

fn binary(headers: &HeaderMap, body: &[u8]) -> Result<CloudEvent, ApiError> {
    let mut attributes = Attributes::default();
    for (header, value) in headers {
        let name = match header.as_str().strip_prefix(PREFIX) {
            Some(name) => name,
            None if TRACING.contains(&header.as_str()) => header.as_str(),
            None => continue,
        };
        let value = header_value::decode(value.as_bytes())
            .ok_or_else(|| bad(format!("{header}: must be UTF-8")))?;
        attributes.text(name, value)?;
    }
    let content_type = content_type(headers);
    if let Some(content_type) = content_type {
        attributes.text("datacontenttype", content_type.to_owned())?;
    }
    attributes.into_event(data_of(content_type, body)?)
}

/// The data of a body: JSON and text as they are, anything else as bytes. That is also what has no type: none is guessed.
fn data_of(content_type: Option<&str>, body: &[u8]) -> Result<Data, ApiError> {
    if body.is_empty() {
        return Ok(Data::Absent);
    }
    let essence = essence(content_type.unwrap_or_default());
    match std::str::from_utf8(body) {
        Ok(text) if is_json(&essence) => Ok(Data::Json(text.to_owned())),
        Ok(text) if is_text(&essence) => Ok(Data::Json(serde_json::Value::from(text).to_string())),
        Err(_) if is_json(&essence) => Err(ApiError::new(Code::BadJson, "payload is not UTF-8")),
        _ => Ok(Data::Base64(format!("\"{}\"", STANDARD.encode(body)))),
    }
}

fn structured(mut fields: Fields) -> Result<CloudEvent, ApiError> {
    let data = match (fields.remove("data"), fields.remove("data_base64")) {
        (Some(_), Some(_)) => return Err(bad("data_base64: data is given too")),
        (Some(data), None) => Data::Json(data.get().to_owned()),
        (None, Some(base64)) => {
            let text: Option<String> = serde_json::from_str(base64.get()).ok();
            let bytes = text.and_then(|text| STANDARD.decode(text).ok());
            bytes.ok_or_else(|| bad("data_base64: expected a string in base64"))?;
            Data::Base64(base64.get().to_owned())
        }
        (None, None) => Data::Absent,
    };
    let mut attributes = Attributes::default();
    for (name, value) in fields {
        let json = value.get();
        match json.as_bytes().first() {
            Some(b'"') => {
                let text = serde_json::from_str(json);
                attributes.text(
                    &name,
                    text.map_err(|error| bad(format!("{name}: {error}")))?,
                )?;
            }
            // An attribute that is null is absent.
            Some(b'n') => {}
            Some(b'{' | b'[') => {
                return Err(bad(format!(
                    "{name}: expected a string, a number or a boolean"
                )));
            }
            _ => attributes.json(&name, json)?,
        }
    }
    attributes.into_event(data)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        let code = match error.classify() {
            serde_json::error::Category::Data => Code::BadFrame,
            _ => Code::BadJson,
        };
        ApiError::new(code, format!("invalid CloudEvent: {error}"))
    })
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?;
    value.to_str().ok()
}

/// A media type without its parameters, in lower case.
pub(super) fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn is_json(essence: &str) -> bool {
    matches!(essence, "application/json" | "text/json") || essence.ends_with("+json")
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/") || essence == "application/xml" || essence.ends_with("+xml")
}
