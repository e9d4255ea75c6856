//! From the HTTP binding, binary, structured or batched, to what the bus publishes.

use super::{BASE64_HEADER, JSON_VALUES_HEADER, NO_DATA_HEADER, PREFIX, TRACING};
use crate::api_error::ApiError;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prombus_api::Code;
use prombus_api::options::PublishOptions;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The longest name of an attribute. The specification advises 20.
const MAX_NAME_BYTES: usize = 64;

/// How events come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Attributes are headers, the body is the data.
    Binary,
    /// The body is one event in JSON.
    Structured,
    /// The body is a list of them.
    Batch,
}

/// An event as the bus publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloudEvent {
    /// What happened.
    pub(crate) event_type: String,
    /// JSON text.
    pub(crate) payload: String,
    /// The rest.
    pub(crate) options: PublishOptions<'static>,
}

/// An event's attributes while they are gathered.
#[derive(Default)]
struct Attributes {
    values: BTreeMap<String, String>,
    /// Those whose values are no strings in JSON.
    json_values: Vec<String>,
}

/// How a request brings CloudEvents; `None` where it brings none.
pub(crate) fn mode_of(headers: &HeaderMap) -> Option<Mode> {
    let content_type = text_header(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/cloudevents+json") {
        return Some(Mode::Structured);
    }
    if essence.eq_ignore_ascii_case("application/cloudevents-batch+json") {
        return Some(Mode::Batch);
    }
    headers.contains_key("ce-specversion").then_some(Mode::Binary)
}

impl CloudEvent {
    /// Reads the events of a request.
    pub(crate) fn read(mode: Mode, headers: &HeaderMap, body: &[u8]) -> Result<Vec<Self>, ApiError> {
        match mode {
            Mode::Binary => Ok(vec![Self::binary(headers, body)?]),
            Mode::Structured => Ok(vec![Self::structured(object(body)?)?]),
            Mode::Batch => {
                let events: Vec<BTreeMap<String, Box<RawValue>>> = parse(body)?;
                let events = events.into_iter().enumerate();
                let events = events.map(|(at, event)| {
                    Self::structured(event).map_err(|error| {
                        ApiError::new(error.code, format!("event {at}: {}", error.message))
                    })
                });
                events.collect()
            }
        }
    }

    fn binary(headers: &HeaderMap, body: &[u8]) -> Result<Self, ApiError> {
        let mut attributes = Attributes::default();
        for (name, value) in headers {
            let Some(name) = name.as_str().strip_prefix(PREFIX) else {
                continue;
            };
            let value = std::str::from_utf8(value.as_bytes())
                .map_err(|_| bad(&format!("ce-{name}: must be UTF-8")))?;
            attributes.add(name, percent_decoded(value)?.into_owned())?;
        }
        for name in TRACING {
            if let Some(value) = text_header(headers, name) {
                attributes.values.insert(name.to_owned(), value.to_owned());
            }
        }
        let content_type = text_header(headers, header::CONTENT_TYPE.as_str());
        if let Some(content_type) = content_type {
            attributes.values.insert("datacontenttype".to_owned(), content_type.to_owned());
        }
        if body.is_empty() {
            return attributes.into_event("null".to_owned(), Some(NO_DATA_HEADER));
        }
        let is_json = content_type.is_none_or(is_json_type);
        match std::str::from_utf8(body) {
            Ok(text) if is_json => attributes.into_event(text.to_owned(), None),
            Ok(text) => {
                let text = serde_json::Value::from(text).to_string();
                attributes.into_event(text, None)
            }
            Err(_) if is_json => Err(ApiError::new(Code::BadJson, "payload is not UTF-8")),
            Err(_) => {
                let text = format!("\"{}\"", STANDARD.encode(body));
                attributes.into_event(text, Some(BASE64_HEADER))
            }
        }
    }

    fn structured(mut fields: BTreeMap<String, Box<RawValue>>) -> Result<Self, ApiError> {
        let data = fields.remove("data");
        let base64 = fields.remove("data_base64");
        let (payload, marker) = match (data, base64) {
            (Some(_), Some(_)) => return Err(bad("data_base64: data is given too")),
            (Some(data), None) => (data.get().to_owned(), None),
            (None, Some(base64)) => {
                let text: String = serde_json::from_str(base64.get())
                    .map_err(|_| bad("data_base64: must be a string"))?;
                STANDARD
                    .decode(&text)
                    .map_err(|_| bad("data_base64: must be base64"))?;
                (base64.get().to_owned(), Some(BASE64_HEADER))
            }
            (None, None) => ("null".to_owned(), Some(NO_DATA_HEADER)),
        };
        let mut attributes = Attributes::default();
        for (name, value) in fields {
            match value.get().as_bytes().first() {
                Some(b'"') => {
                    let text = serde_json::from_str(value.get());
                    let text = text.map_err(|_| bad(&format!("{name}: must be a string")))?;
                    attributes.add(&name, text)?;
                }
                // An attribute that is null is not there.
                Some(b'n') => {}
                Some(b'{' | b'[') => return Err(bad(&format!("{name}: must not be a structure"))),
                _ => {
                    attributes.json_values.push(name.clone());
                    attributes.add(&name, value.get().to_owned())?;
                }
            }
        }
        attributes.into_event(payload, marker)
    }
}

impl Attributes {
    fn add(&mut self, name: &str, value: String) -> Result<(), ApiError> {
        let is_name_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) || !name.bytes().all(is_name_byte) {
            let name: String = name.chars().take(MAX_NAME_BYTES).collect();
            let reason = "names of attributes have lower-case letters and digits only";
            return Err(bad(&format!("{name:?}: {reason}")));
        }
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    fn required(&self, name: &str) -> Result<&str, ApiError> {
        match self.values.get(name).map(String::as_str) {
            None | Some("") => Err(bad(&format!("{name}: missing"))),
            Some(value) => Ok(value),
        }
    }

    fn into_event(
        mut self,
        payload: String,
        marker: Option<&str>,
    ) -> Result<CloudEvent, ApiError> {
        let version = self.required("specversion")?;
        if version != "1.0" {
            return Err(bad(&format!("specversion: expected 1.0, not {version:?}")));
        }
        let event_type = self.required("type")?.to_owned();
        self.required("source")?;
        self.required("id")?;
        let id = self.values.remove("id");
        let key = self.values.remove("subject");
        let ts = self.take_time()?;
        let mut headers = Vec::new();
        for name in TRACING {
            if let Some(value) = self.values.remove(name) {
                headers.push((name.to_owned(), value));
            }
        }
        headers.extend(marker.map(|marker| (marker.to_owned(), "true".to_owned())));
        if !self.json_values.is_empty() {
            let names = self.json_values.join(",");
            headers.push((JSON_VALUES_HEADER.to_owned(), names));
        }
        let others = self.values.into_iter();
        headers.extend(others.map(|(name, value)| (format!("{PREFIX}{name}"), value)));
        Ok(CloudEvent {
            event_type,
            payload,
            options: PublishOptions {
                id: id.map(Cow::Owned),
                ts,
                key: key.map(Cow::Owned),
                headers,
                ..PublishOptions::default()
            },
        })
    }

    /// Takes the time, and leaves it among the attributes where milliseconds in UTC do not say it exactly.
    fn take_time(&mut self) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.values.remove("time") else {
            return Ok(None);
        };
        let time: Result<jiff::Timestamp, _> = text.parse();
        let ms = time.ok().map(jiff::Timestamp::as_millisecond);
        let ts = ms.and_then(|ms| u64::try_from(ms).ok());
        let ts = ts.ok_or_else(|| bad("time: expected RFC 3339, from 1970 on"))?;
        if super::encode::time_text(ts).as_ref() != Some(&text) {
            self.values.insert("time".to_owned(), text);
        }
        Ok(Some(ts))
    }
}

fn object(body: &[u8]) -> Result<BTreeMap<String, Box<RawValue>>, ApiError> {
    parse(body)
}

fn parse<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        let code = match error.classify() {
            serde_json::error::Category::Data => Code::BadFrame,
            _ => Code::BadJson,
        };
        ApiError::new(code, format!("not a CloudEvent in JSON: {error}"))
    })
}

/// Whether data of a media type is JSON.
fn is_json_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

fn text_header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A header's value as it is meant: characters that headers cannot have are percent-encoded.
fn percent_decoded(value: &str) -> Result<Cow<'_, str>, ApiError> {
    if !value.contains('%') {
        return Ok(Cow::Borrowed(value));
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, decoded) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    let text = String::from_utf8(bytes);
    Ok(Cow::Owned(text.map_err(|_| bad("a header is not percent-encoded UTF-8"))?))
}

fn bad(message: &str) -> ApiError {
    ApiError::new(Code::BadFrame, message)
}
