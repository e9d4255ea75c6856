//! The attributes of a CloudEvent, checked and mapped to the fields of an event.

use super::decode::{CloudEvent, Data, bad};
use super::encode::time_text;
use super::{BASE64_HEADER, JSON_VALUES_HEADER, NO_DATA_HEADER, PREFIX, TRACING};
use crate::api_error::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prombus_api::options::PublishOptions;
use ring::digest::{SHA256, digest};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The longest name of an attribute. The specification advises 20.
const MAX_NAME_BYTES: usize = 64;
/// The longest id that the bus takes.
const MAX_ID_BYTES: usize = 64;
/// Names that hold the data, so that no attribute may have them.
const DATA_NAMES: [&str; 2] = ["data", "data_base64"];

/// An event's attributes while they are gathered.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    values: BTreeMap<String, String>,
    /// The names of those whose values are no strings in JSON.
    json_values: Vec<String>,
}

impl Attributes {
    /// Adds an attribute that is a string.
    pub(super) fn text(&mut self, name: &str, value: String) -> Result<(), ApiError> {
        let is_name_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_name_byte);
        if !is_name || DATA_NAMES.contains(&name) {
            let name: String = name.chars().take(MAX_NAME_BYTES).collect();
            return Err(bad(format!(
                "invalid attribute name {name:?}; expected up to {MAX_NAME_BYTES} lower-case letters and digits"
            )));
        }
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    /// Adds an attribute that is a number or a boolean in JSON.
    pub(super) fn json(&mut self, name: &str, json: &str) -> Result<(), ApiError> {
        self.text(name, json.to_owned())?;
        self.json_values.push(name.to_owned());
        Ok(())
    }

    /// The event with these attributes.
    pub(super) fn into_event(mut self, data: Data) -> Result<CloudEvent, ApiError> {
        let version = self.required("specversion")?;
        if version != "1.0" {
            return Err(bad(format!("specversion: expected 1.0, not {version:?}")));
        }
        let event_type = self.required("type")?.to_owned();
        self.required("source")?;
        self.required("id")?;
        let id = self.take_id();
        let ts = self.take_time()?;
        let key = self.take_subject()?;
        let (payload, marker) = match data {
            Data::Json(text) => (text, None),
            Data::Base64(text) => (text, Some(BASE64_HEADER)),
            Data::Absent => ("null".to_owned(), Some(NO_DATA_HEADER)),
        };
        let mut headers = Vec::new();
        for name in TRACING {
            let value = self.values.remove(name);
            headers.extend(value.map(|value| (name.to_owned(), value)));
        }
        headers.extend(marker.map(|marker| (marker.to_owned(), "true".to_owned())));
        if !self.json_values.is_empty() {
            headers.push((JSON_VALUES_HEADER.to_owned(), self.json_values.join(",")));
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

    fn required(&self, name: &str) -> Result<&str, ApiError> {
        match self.values.get(name).map(String::as_str) {
            None | Some("") => Err(bad(format!("{name}: missing"))),
            Some(value) => Ok(value),
        }
    }

    /// Takes the id, and leaves it among the attributes where the bus does not take it as it is.
    fn take_id(&mut self) -> Option<String> {
        let id = self.values.remove("id")?;
        let is_printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if id.len() <= MAX_ID_BYTES && id.bytes().all(is_printable) && id.trim() == id {
            return Some(id);
        }
        let hash = URL_SAFE_NO_PAD.encode(digest(&SHA256, id.as_bytes()));
        self.values.insert("id".to_owned(), id);
        Some(format!("{PREFIX}{hash}"))
    }

    fn take_subject(&mut self) -> Result<Option<String>, ApiError> {
        match self.values.remove("subject") {
            Some(subject) if subject.is_empty() => Err(bad("subject: must not be empty")),
            subject => Ok(subject),
        }
    }

    /// Takes the time, and leaves it among the attributes where milliseconds in UTC do not say it exactly.
    fn take_time(&mut self) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.values.remove("time") else {
            return Ok(None);
        };
        let ts = epoch_ms(&text).ok_or_else(|| {
            bad(format!(
                "time: expected RFC 3339 from 1970 on, not {text:?}"
            ))
        })?;
        if time_text(ts).as_ref() != Some(&text) {
            self.values.insert("time".to_owned(), text);
        }
        Ok(Some(ts))
    }
}

/// Epoch milliseconds of a time in RFC 3339; `None` where it is none.
fn epoch_ms(text: &str) -> Option<u64> {
    // The library also takes blanks instead of the T, and names of time zones in brackets.
    let is_strict = text
        .as_bytes()
        .get(10)
        .is_some_and(|byte| byte.eq_ignore_ascii_case(&b'T'))
        && !text.contains('[');
    let time: jiff::Timestamp = text.parse().ok().filter(|_| is_strict)?;
    u64::try_from(time.as_millisecond()).ok()
}
