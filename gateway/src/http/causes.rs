//! `GET /causes`: the events around one in the chain of causes. Back by `caused_by`; forwards by searching what came
//! after it, which is limited in events, topics and bytes, and the reply says whether it was all.

use super::call::Call;
use super::events::event_by_id;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use prombus::{Find, ReadFrom, ReadLimit, StoredEvent};
use prombus_api::Code;
use prombus_api::http::{Causes, CausesQuery};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The most causes of an event that are looked up.
const MAX_CAUSES: usize = 50;
/// The most topics that are searched.
const MAX_TOPICS: usize = 1_000;
/// The most events that are searched for effects, in all topics together.
const MAX_SEARCHED: usize = 50_000;
/// The most effects of a reply.
const MAX_EFFECTS: usize = 100;

const PAGE: ReadLimit = ReadLimit {
    events: 1_000,
    bytes: 1 << 20,
};

#[derive(Deserialize)]
struct CausedBy {
    #[serde(default)]
    caused_by: Vec<String>,
}

pub(super) async fn causes(call: Call) -> Result<Response, ApiError> {
    let wanted = CausesQuery::parse(&call.query()?)?;
    call.allow(Action::Subscribe, &wanted.topic, None)?;
    let topic = call.known(&wanted.topic)?;
    let store = call.gateway().bus.store();
    let Some(event) = event_by_id(&**store, &topic, &wanted.id).await? else {
        let why = format!("topic {topic} holds no event {:?}", wanted.id);
        return Err(ApiError::new(Code::UnknownId, why));
    };
    let topics = searched_topics(&call, &topic);
    let is_all_topics = topics.len() < MAX_TOPICS;
    let (mut causes, mut unknown) = (Vec::new(), Vec::new());
    for id in caused_by(&event).into_iter().take(MAX_CAUSES) {
        match find_anywhere(&call, &topics, &id).await? {
            Some(cause) => causes.push(raw(&cause)?),
            None => unknown.push(id),
        }
    }
    let (effects, is_searched) = effects(&call, &topics, &event, &wanted.id).await?;
    Ok(reply::json(&Causes {
        event: raw(&event)?,
        causes,
        unknown,
        effects,
        complete: is_searched && is_all_topics,
    }))
}

/// The topics that the caller may read, its own first.
fn searched_topics(call: &Call, own: &Arc<str>) -> Vec<Arc<str>> {
    let policy = &call.grant.policy;
    let others = call.gateway().bus.topics().into_iter();
    let others = others
        .map(|info| info.name)
        .filter(|name| name != own && policy.may(Action::Subscribe, name, None));
    let all = std::iter::once(own.clone()).chain(others);
    all.take(MAX_TOPICS).collect()
}

async fn find_anywhere(
    call: &Call,
    topics: &[Arc<str>],
    id: &str,
) -> Result<Option<StoredEvent>, ApiError> {
    let store = call.gateway().bus.store();
    for topic in topics {
        if let Some(event) = event_by_id(&**store, topic, id).await? {
            return Ok(Some(event));
        }
    }
    Ok(None)
}

/// Events that name this one as their cause, and whether everything was searched.
async fn effects(
    call: &Call,
    topics: &[Arc<str>],
    event: &StoredEvent,
    id: &str,
) -> Result<(Vec<Box<RawValue>>, bool), ApiError> {
    let store = call.gateway().bus.store();
    let (mut found, mut searched) = (Vec::new(), 0);
    for topic in topics {
        let tail = store.topic(topic).map_or(0, |info| info.tail_seq);
        let Some(mut next) = store.find(topic, Find::Ts(event.ts())).await? else {
            continue;
        };
        while next <= tail {
            if searched >= MAX_SEARCHED || found.len() >= MAX_EFFECTS {
                return Ok((found, false));
            }
            let page = store.read(topic, ReadFrom::Seq(next), PAGE).await?;
            searched += page.events.len();
            for effect in page.events.iter().filter(|effect| names(effect, id)) {
                found.push(raw(effect)?);
            }
            next = page.next_seq.max(next + 1);
        }
    }
    Ok((found, true))
}

/// Whether an event has this id among its causes. Most do not even have its text, which is looked for first.
fn names(event: &StoredEvent, id: &str) -> bool {
    let json = event.json_bytes();
    let has_text = std::str::from_utf8(json).is_ok_and(|json| json.contains(id));
    has_text && caused_by(event).iter().any(|cause| cause == id)
}

fn caused_by(event: &StoredEvent) -> Vec<String> {
    let parsed = serde_json::from_slice::<CausedBy>(event.json_bytes());
    parsed.map_or_else(|_| Vec::new(), |fields| fields.caused_by)
}

fn raw(event: &StoredEvent) -> Result<Box<RawValue>, ApiError> {
    let json = String::from_utf8_lossy(event.json_bytes()).into_owned();
    RawValue::from_string(json).map_err(|error| ApiError::new(Code::ReadFailed, error.to_string()))
}
