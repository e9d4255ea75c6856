//! `/list`: the states of a topic's keys whose payloads fit, in pages, with how many there are in all.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use prombus::{KeyRange, KeyState};
use prombus_api::Code;
use prombus_api::http::{ListQuery, StateText, write_list_page};
use serde_json::Value;

/// How many states a page has by default.
const DEFAULT_PAGE_STATES: u64 = 100;
/// The most states of a page.
const MAX_PAGE_STATES: u64 = 10_000;
/// About how many bytes of payloads a page may have.
const MAX_PAGE_BYTES: usize = 8 << 20;
/// How many keys are looked through at most: all of them have to be, to tell how many fit.
const MAX_LISTED_KEYS: usize = 1_000_000;
/// How many keys are looked at before others get their turn.
const STEP_KEYS: usize = 1_000;

/// What is gathered while all keys are looked through.
struct Listing {
    wanted: ListQuery,
    limit: u64,
    offset: u64,
    total: u64,
    looked_at: usize,
    bytes: usize,
    page: Vec<KeyState>,
}

pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Subscribe, &call.topic, None)?;
    let wanted = ListQuery::parse(&call.query()?)?;
    let mut listing = Listing::new(wanted)?;
    let bus = &call.gateway().bus;
    let mut range = KeyRange {
        prefix: listing.wanted.prefix.clone().unwrap_or_default(),
        limit: STEP_KEYS,
        ..KeyRange::default()
    };
    loop {
        let next = match listing.wanted.at {
            None => {
                let page = bus.latest_page(&call.topic, &range).await?;
                for event in &page.events {
                    listing.look_at(event.payload(), || KeyState::of(event))?;
                }
                page.next
            }
            Some(at_ts) => {
                let page = bus.table_at(&call.topic, at_ts, &range).await?;
                for state in &page.states {
                    listing.look_at(&state.payload, || Some(state.clone()))?;
                }
                page.next
            }
        };
        match next {
            Some(next) => range.after = Some(next),
            None => break,
        }
        tokio::task::yield_now().await;
    }
    let mut out = Vec::with_capacity(listing.bytes + 128);
    let items = listing.page.iter().map(text_of);
    write_list_page(
        &mut out,
        &call.topic,
        (listing.total, listing.offset),
        items,
    );
    Ok(reply::json_text(out))
}

impl Listing {
    fn new(wanted: ListQuery) -> Result<Self, ApiError> {
        let limit = wanted.limit.unwrap_or(DEFAULT_PAGE_STATES);
        if limit == 0 {
            let message = "limit: must be at least 1";
            return Err(ApiError::new(Code::BadFrame, message));
        }
        Ok(Self {
            limit: limit.min(MAX_PAGE_STATES),
            offset: wanted.offset.unwrap_or(0),
            wanted,
            total: 0,
            looked_at: 0,
            bytes: 0,
            page: Vec::new(),
        })
    }

    /// Counts a state if it fits, and keeps it if it is of the page.
    fn look_at(
        &mut self,
        payload: &str,
        state: impl FnOnce() -> Option<KeyState>,
    ) -> Result<(), ApiError> {
        self.looked_at += 1;
        if self.looked_at > MAX_LISTED_KEYS {
            let message = format!("more than {MAX_LISTED_KEYS} keys; narrow it with prefix");
            return Err(ApiError::new(Code::TooLarge, message));
        }
        if !fits(payload, &self.wanted.fields) {
            return Ok(());
        }
        self.total += 1;
        // A page that is full for its bytes is short; `next` says where the rest begins.
        let is_of_page = self.total > self.offset
            && (self.page.len() as u64) < self.limit
            && (self.bytes < MAX_PAGE_BYTES);
        if is_of_page {
            self.bytes += payload.len();
            self.page.extend(state());
        }
        Ok(())
    }
}

fn text_of(state: &KeyState) -> StateText<'_> {
    StateText {
        key: &state.key,
        payload: &state.payload,
        ts: state.ts,
        seq: state.seq,
        id: state.id.as_deref(),
    }
}

/// Whether a payload has these values at these paths.
fn fits(payload: &str, fields: &[(String, String)]) -> bool {
    if fields.is_empty() {
        return true;
    }
    let Ok(payload) = serde_json::from_str::<Value>(payload) else {
        return false;
    };
    fields.iter().all(|(path, wanted)| {
        let found = value_at(&payload, path);
        found.is_some_and(|found| is_value(found, wanted))
    })
}

/// The value at a path of names, and numbers of a list's items, with dots between. A name may have dots in it, too:
/// the longest that is there counts.
fn value_at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let direct = match value {
        Value::Object(fields) => fields.get(path),
        Value::Array(items) => path.parse::<usize>().ok().and_then(|at| items.get(at)),
        _ => None,
    };
    direct.or_else(|| {
        let mut dots = path.rmatch_indices('.');
        dots.find_map(|(dot, _)| {
            let (name, rest) = (&path[..dot], &path[dot + 1..]);
            let inner = match value {
                Value::Object(fields) => fields.get(name)?,
                Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
                _ => return None,
            };
            value_at(inner, rest)
        })
    })
}

/// Whether a value is what a parameter says: a string by its text, anything else by its JSON, numbers by what they
/// amount to.
fn is_value(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Number(number) => {
            let same = number.as_f64().zip(wanted.parse::<f64>().ok());
            number.to_string() == wanted || same.is_some_and(|(one, other)| one == other)
        }
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => {
            serde_json::from_str::<Value>(wanted).is_ok_and(|wanted| wanted == *value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_compared() {
        let payload = r#"{"s":"alive","n":1.50,"big":9007199254740993,"t":true,"z":null,
            "o":{"p":{"q":"deep"},"a.b":"dotted"},"l":[{"x":1},"two"],"":"empty"}"#;
        for (path, value, expected) in [
            ("s", "alive", true),
            ("s", "stale", false),
            ("s", "\"alive\"", false),
            ("n", "1.5", true),
            ("n", "1.50", true),
            ("n", "2", false),
            ("big", "9007199254740993", true),
            ("t", "true", true),
            ("t", "1", false),
            ("z", "null", true),
            ("o.p.q", "deep", true),
            ("o.a.b", "dotted", true),
            ("o.p", r#"{"q": "deep"}"#, true),
            ("l.0.x", "1", true),
            ("l.1", "two", true),
            ("l.2", "two", false),
            ("s.x", "alive", false),
            ("none", "", false),
            ("", "empty", true),
        ] {
            let fields = [(path.to_owned(), value.to_owned())];
            assert_eq!(fits(payload, &fields), expected, "{path}={value}");
        }
        assert!(fits("1", &[]));
        assert!(!fits("1", &[("a".to_owned(), "1".to_owned())]));
    }
}
