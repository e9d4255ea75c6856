//! Pages of stored events: `/replay` and `/latest-by-key`.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::cloudevents::{self, Format};
use hyper::header::{HeaderName, HeaderValue};
use prombus::{Bus, Find, KeyRange, Page, ReadFrom, ReadLimit, StartAt, Store, StoredEvent};
use prombus_api::Code;
use prombus_api::http::{LatestQuery, ReadQuery, write_event_page, write_latest_page};
use std::sync::Arc;

/// How many events a page has by default.
const DEFAULT_PAGE_EVENTS: u64 = 1_000;
/// The most events of a page.
const MAX_PAGE_EVENTS: u64 = 10_000;
/// About how many bytes a page has at most; it ends early where events are large, and says where to go on.
const MAX_PAGE_BYTES: usize = 8 << 20;
/// The most keys that one request names.
const MAX_KEYS: usize = 1_000;
/// Where a list of CloudEvents, which has no room for it, is to be read on.
const NEXT_SEQ: HeaderName = HeaderName::from_static("x-next-seq");

pub(super) async fn replay(call: Call) -> Result<Response, ApiError> {
    let wanted = ReadQuery::parse(&call.query()?)?;
    call.allow(Action::Subscribe, &wanted.topic, None)?;
    let topic = call.known(&wanted.topic)?;
    let start = wanted.start.unwrap_or(StartAt::Earliest);
    let mut page = read_page(&call, &topic, start, wanted.limit).await?;
    if wanted.upcast {
        upcast(&call.gateway().bus, &topic, &mut page.events).await?;
    }
    write_page(&call, &topic, &page)
}

pub(super) async fn latest_by_key(call: Call) -> Result<Response, ApiError> {
    let wanted = LatestQuery::parse(&call.query()?)?;
    call.allow(Action::Subscribe, &wanted.topic, None)?;
    let bus = &call.gateway().bus;
    if wanted.keys.len() > MAX_KEYS {
        let message = format!("key: at most {MAX_KEYS} keys at a time");
        return Err(ApiError::new(Code::TooLarge, message));
    }
    if wanted.tombstones && wanted.keys.is_empty() {
        let message = "tombstones: only where keys are named";
        return Err(ApiError::new(Code::BadFrame, message));
    }
    let (events, next) = if wanted.keys.is_empty() {
        let limit = page_limit(wanted.limit)?.events;
        let range = KeyRange {
            prefix: wanted.prefix.unwrap_or_default(),
            after: wanted.after,
            limit,
        };
        let page = bus.latest_page(&wanted.topic, &range).await?;
        (page.events, page.next)
    } else {
        let keys: Vec<&str> = wanted.keys.iter().map(String::as_str).collect();
        let events = if wanted.tombstones {
            with_tombstones(bus, &wanted.topic, &keys).await?
        } else {
            bus.latest_by_key(&wanted.topic, &keys).await?
        };
        (events, None)
    };
    let mut out = Vec::new();
    let records = events.iter().map(StoredEvent::json_bytes);
    write_latest_page(&mut out, &wanted.topic, records, next.as_deref());
    Ok(reply::json_text(out))
}

/// The latest events of these keys, also of those that were deleted.
async fn with_tombstones(
    bus: &Bus,
    topic: &str,
    keys: &[&str],
) -> Result<Vec<StoredEvent>, ApiError> {
    let mut events = Vec::with_capacity(keys.len());
    for key in keys {
        events.extend(bus.latest_or_tombstone(topic, key).await?);
    }
    Ok(events)
}

/// The position that a reader begins at.
pub(super) async fn first_seq(
    store: &dyn Store,
    topic: &Arc<str>,
    start: StartAt,
) -> Result<u64, ApiError> {
    let behind_tail = || store.topic(topic).map_or(1, |info| info.tail_seq + 1);
    match start {
        StartAt::Latest => Ok(behind_tail()),
        StartAt::Earliest => Ok(1),
        StartAt::Seq(0) => Err(ApiError::new(Code::BadFrame, "seq: positions begin at 1")),
        StartAt::Seq(seq) => Ok(seq),
        StartAt::Ts(ts) => {
            let found = store.find(topic, Find::Ts(ts)).await?;
            Ok(found.unwrap_or_else(behind_tail))
        }
        StartAt::AfterId(id) => match store.find(topic, Find::Id(&id)).await? {
            Some(seq) => Ok(seq + 1),
            None => {
                let message = format!("no event {id:?} in topic {topic}");
                Err(ApiError::new(Code::UnknownId, message))
            }
        },
    }
}

/// The event with an id; `None` where the topic does not hold it.
pub(super) async fn event_by_id(
    store: &dyn Store,
    topic: &Arc<str>,
    id: &str,
) -> Result<Option<StoredEvent>, ApiError> {
    let Some(seq) = store.find(topic, Find::Id(id)).await? else {
        return Ok(None);
    };
    let one = ReadLimit {
        events: 1,
        bytes: 1,
    };
    let page = store.read(topic, ReadFrom::Seq(seq), one).await?;
    let event = page.events.into_iter().next();
    Ok(event.filter(|event| event.seq() == seq))
}

/// Makes events of earlier versions of their topic's schema ones of the latest.
pub(super) async fn upcast(
    bus: &Bus,
    topic: &str,
    events: &mut [StoredEvent],
) -> Result<(), ApiError> {
    bus.load_schemas(topic).await?;
    for event in events {
        *event = bus.upcast(event.clone());
    }
    Ok(())
}

async fn read_page(
    call: &Call,
    topic: &Arc<str>,
    start: StartAt,
    limit: Option<u64>,
) -> Result<Page, ApiError> {
    if start == StartAt::Latest {
        let message = "from: expected earliest, ts, afterId or seq";
        return Err(ApiError::new(Code::BadFrame, message));
    }
    let limit = page_limit(limit)?;
    let store = call.gateway().bus.store();
    let from_seq = first_seq(&**store, topic, start).await?;
    Ok(store.read(topic, ReadFrom::Seq(from_seq), limit).await?)
}

fn write_page(call: &Call, topic: &str, page: &Page) -> Result<Response, ApiError> {
    let next = Some(page.next_seq).filter(|next| *next <= page.tail_seq);
    let bytes: usize = page.events.iter().map(StoredEvent::stored_bytes).sum();
    let mut out = Vec::with_capacity(bytes + 128);
    if !Format::accepted(&call.parts.headers).is_records() {
        let events = page.events.iter().map(|event| (event, Vec::new()));
        cloudevents::write_batch(&mut out, events);
        let mut response = cloudevents::batch_reply(out);
        if let Some(next) = next {
            let headers = response.headers_mut();
            headers.insert(NEXT_SEQ, HeaderValue::from(next));
        }
        return Ok(response);
    }
    let records = page.events.iter().map(StoredEvent::json_bytes);
    write_event_page(&mut out, topic, records, next);
    Ok(reply::json_text(out))
}

pub(super) fn page_limit(limit: Option<u64>) -> Result<ReadLimit, ApiError> {
    match limit.unwrap_or(DEFAULT_PAGE_EVENTS).min(MAX_PAGE_EVENTS) {
        0 => Err(ApiError::new(Code::BadFrame, "limit: must be at least 1")),
        events => Ok(ReadLimit {
            events: events as usize,
            bytes: MAX_PAGE_BYTES,
        }),
    }
}
