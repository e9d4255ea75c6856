//! `GET /histogram`: how many events a topic got over time. Each boundary is looked up by its time, so the cost depends
//! on the number of buckets and not on how much is stored.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use prombus::{Find, ReadFrom, ReadLimit, Store};
use prombus_api::Code;
use prombus_api::http::{Histogram, HistogramQuery};
use std::sync::Arc;

/// How many buckets there are by default.
const DEFAULT_BUCKETS: u64 = 60;
/// The most buckets: each is a look-up.
const MAX_BUCKETS: u64 = 240;

const ONE_EVENT: ReadLimit = ReadLimit {
    events: 1,
    bytes: 1,
};

pub(super) async fn histogram(call: Call) -> Result<Response, ApiError> {
    let wanted = HistogramQuery::parse(&call.query()?)?;
    call.allow(Action::Subscribe, &wanted.topic, None)?;
    let topic = call.known(&wanted.topic)?;
    let buckets = match wanted.buckets.unwrap_or(DEFAULT_BUCKETS) {
        0 => return Err(bad("buckets: expected at least 1")),
        buckets => buckets.min(MAX_BUCKETS),
    };
    let store = &**call.gateway().bus.store();
    let Some(span) = Span::of(store, &topic).await? else {
        return Ok(reply::json(&empty(&topic, &wanted)));
    };
    let from_ts = wanted.from_ts.unwrap_or(span.first_ts);
    let to_ts = wanted.to_ts.unwrap_or(span.last_ts.max(from_ts));
    if to_ts < from_ts {
        return Err(bad("toTs: it is before fromTs"));
    }
    let bucket_ms = (to_ts - from_ts).saturating_add(1).div_ceil(buckets).max(1);
    let mut counts = Vec::with_capacity(buckets as usize);
    let mut begin = seq_at(store, &topic, from_ts, span.tail_seq).await?;
    let mut end_ts = from_ts;
    for _ in 0..buckets {
        end_ts = end_ts.saturating_add(bucket_ms);
        let end = seq_at(
            store,
            &topic,
            end_ts.min(to_ts.saturating_add(1)),
            span.tail_seq,
        )
        .await?;
        counts.push(end.saturating_sub(begin));
        // Where publishers give their own times a later time may come earlier; it is counted once.
        begin = begin.max(end);
    }
    Ok(reply::json(&Histogram {
        topic: topic.to_string(),
        from_ts,
        to_ts,
        bucket_ms,
        counts,
    }))
}

/// Where the events of a topic begin and end.
struct Span {
    first_ts: u64,
    last_ts: u64,
    tail_seq: u64,
}

impl Span {
    async fn of(store: &dyn Store, topic: &Arc<str>) -> Result<Option<Self>, ApiError> {
        let tail_seq = store.topic(topic).map_or(0, |info| info.tail_seq);
        let first = store.read(topic, ReadFrom::Seq(1), ONE_EVENT).await?;
        let Some(first) = first.events.first() else {
            return Ok(None);
        };
        let last = store
            .read(topic, ReadFrom::Seq(tail_seq), ONE_EVENT)
            .await?;
        Ok(Some(Self {
            first_ts: first.ts(),
            last_ts: last.events.first().map_or(first.ts(), |event| event.ts()),
            tail_seq,
        }))
    }
}

/// The position of the first event at or after a time; the one behind the tail where there is none.
async fn seq_at(
    store: &dyn Store,
    topic: &Arc<str>,
    ts: u64,
    tail_seq: u64,
) -> Result<u64, ApiError> {
    let found = store.find(topic, Find::Ts(ts)).await?;
    Ok(found.unwrap_or(tail_seq + 1).min(tail_seq + 1))
}

fn empty(topic: &str, wanted: &HistogramQuery) -> Histogram {
    Histogram {
        topic: topic.to_owned(),
        from_ts: wanted.from_ts.unwrap_or(0),
        to_ts: wanted.to_ts.unwrap_or(0),
        bucket_ms: 0,
        counts: Vec::new(),
    }
}

fn bad(why: &str) -> ApiError {
    ApiError::new(Code::BadFrame, why)
}
