//! `/diff`: what changed in a topic's keys between two times, in pages.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use prombus::{KeyChange, KeyRange, KeyState};
use prombus_api::Code;
use prombus_api::http::{ChangedKey, DiffPage, DiffQuery, StateItem};
use serde_json::value::RawValue;

/// How many keys are compared for a page by default, and at most.
const DEFAULT_PAGE_KEYS: u64 = 1_000;
const MAX_PAGE_KEYS: u64 = 10_000;

pub(super) async fn diff(call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Subscribe, &call.topic, None)?;
    let wanted = DiffQuery::parse(&call.query()?)?;
    let limit = wanted.limit.unwrap_or(DEFAULT_PAGE_KEYS).min(MAX_PAGE_KEYS);
    let range = KeyRange {
        prefix: wanted.prefix.unwrap_or_default(),
        after: wanted.after,
        limit: limit as usize,
    };
    let (from, to) = (wanted.from, wanted.to.unwrap_or(call.gateway().now_ms()));
    let bus = &call.gateway().bus;
    let found = bus.diff(&call.topic, (from, to), &range).await?;
    let mut page = DiffPage {
        topic: call.topic.clone(),
        from,
        to,
        added: Vec::new(),
        changed: Vec::new(),
        deleted: Vec::new(),
        next: found.next,
    };
    for change in found.changes {
        match change {
            KeyChange::Added { to } => page.added.push(item(to)?),
            KeyChange::Deleted { from } => page.deleted.push(item(from)?),
            KeyChange::Changed { from, to } => page.changed.push(ChangedKey {
                key: from.key.clone(),
                from: item(from)?,
                to: item(to)?,
            }),
        }
    }
    Ok(reply::json(&page))
}

fn item(state: KeyState) -> Result<StateItem, ApiError> {
    let payload = RawValue::from_string(state.payload);
    let payload = payload.map_err(|error| ApiError::new(Code::ReadFailed, error.to_string()))?;
    Ok(StateItem {
        key: state.key,
        payload,
        ts: state.ts,
        seq: state.seq,
        id: state.id,
    })
}
