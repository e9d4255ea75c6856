//! Pages of topics and of groups: sorted and filtered here, so that a list of ten thousand costs its reader one page.

use super::call::Call;
use super::message::Response;
use super::reply;
use super::topics::wire_info;
use crate::api_error::ApiError;
use prombus::{GroupMetrics, ReadFrom, ReadLimit, TopicInfo};
use prombus_api::Code;
use prombus_api::http::{GroupPage, GroupRow, PageQuery, TopicPage, TopicRow};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// How many rows a page has by default.
const DEFAULT_ROWS: u64 = 50;
/// The most rows of a page.
const MAX_ROWS: u64 = 200;

const ONE_EVENT: ReadLimit = ReadLimit {
    events: 1,
    bytes: 1,
};

/// Refuses a column that there is not, also where the whole list is given.
pub(super) fn check_topic_order(wanted: &PageQuery) -> Result<(), ApiError> {
    topic_order(wanted.sort.as_deref(), &HashMap::new()).map(drop)
}

/// A page of the topics that the caller may do something with.
pub(super) async fn topics(call: &Call, wanted: &PageQuery) -> Result<Response, ApiError> {
    let gateway = call.gateway();
    let rates = gateway.history.per_minute();
    let order = topic_order(wanted.sort.as_deref(), &rates)?;
    let mut topics = gateway.bus.topics();
    topics.retain(|info| fits(wanted, &info.name, None) && call.may_see(&info.name));
    let (total, page) = page(topics, wanted, order)?;
    let mut rows = Vec::with_capacity(page.len());
    for info in page {
        rows.push(TopicRow {
            last_ts: last_ts(call, &info).await,
            per_minute: rates.get(&info.name).copied().unwrap_or(0),
            recent: gateway.history.topic(&info.name),
            info: wire_info(&info),
        });
    }
    Ok(reply::json(&TopicPage {
        total,
        offset: wanted.offset.unwrap_or(0),
        topics: rows,
    }))
}

/// A page of the durable groups that the caller may know of: all, or those of a topic, or of a name.
pub(super) async fn groups(
    call: &Call,
    wanted: &PageQuery,
    (topic, group): (Option<&str>, Option<&str>),
) -> Result<Response, ApiError> {
    let gateway = call.gateway();
    let order = group_order(wanted.sort.as_deref())?;
    let mut samples = gateway.bus.group_metrics().await?;
    samples.retain(|sample| {
        !sample.is_ephemeral
            && topic.is_none_or(|topic| topic == &*sample.topic)
            && group.is_none_or(|group| group == &*sample.group)
            && fits(wanted, &sample.topic, Some(&sample.group))
            && call.may_look(&sample.topic, Some(&sample.group))
    });
    let (total, page) = page(samples, wanted, order)?;
    let mut rows = Vec::with_capacity(page.len());
    for sample in page {
        // One that was removed meanwhile is left out.
        let Ok(explanation) = super::groups::explained(gateway, &sample.topic, &sample.group).await
        else {
            continue;
        };
        rows.push(GroupRow {
            reason: explanation.reason,
            sentence: explanation.sentence,
            oldest_unacked_ms: sample.oldest_unacked_ms,
            recent_lag: gateway.history.group(&sample.topic, &sample.group),
            info: explanation.group,
        });
    }
    Ok(reply::json(&GroupPage {
        total,
        offset: wanted.offset.unwrap_or(0),
        groups: rows,
    }))
}

/// How many rows fit, and those of the page in their order.
fn page<T>(
    mut rows: Vec<T>,
    wanted: &PageQuery,
    order: impl Fn(&T, &T) -> Ordering,
) -> Result<(u64, Vec<T>), ApiError> {
    let limit = match wanted.limit.unwrap_or(DEFAULT_ROWS) {
        0 => return Err(bad("limit: expected at least 1".to_owned())),
        limit => limit.min(MAX_ROWS),
    };
    // They come in the order of their names, which decides between equals.
    if wanted.descending {
        rows.sort_by(|one, other| order(other, one))
    } else {
        rows.sort_by(order)
    }
    let total = rows.len() as u64;
    let offset = usize::try_from(wanted.offset.unwrap_or(0)).unwrap_or(usize::MAX);
    let page = rows.into_iter().skip(offset).take(limit as usize);
    Ok((total, page.collect()))
}

type Order<'a, T> = Box<dyn Fn(&T, &T) -> Ordering + Send + 'a>;

fn topic_order<'a>(
    column: Option<&str>,
    rates: &'a HashMap<Arc<str>, u64>,
) -> Result<Order<'a, TopicInfo>, ApiError> {
    fn by<'a>(value: impl Fn(&TopicInfo) -> u64 + Send + 'a) -> Order<'a, TopicInfo> {
        Box::new(move |one, other| value(one).cmp(&value(other)))
    }
    Ok(match column.unwrap_or("topic") {
        "topic" => Box::new(|one, other| one.name.cmp(&other.name)),
        "events" => by(|info| info.events),
        "bytes" => by(|info| info.bytes),
        "rate" => by(|info| rates.get(&info.name).copied().unwrap_or(0)),
        other => return Err(unknown_column(other)),
    })
}

fn group_order(column: Option<&str>) -> Result<Order<'static, GroupMetrics>, ApiError> {
    fn by(value: fn(&GroupMetrics) -> u64) -> Order<'static, GroupMetrics> {
        Box::new(move |one, other| value(one).cmp(&value(other)))
    }
    Ok(match column.unwrap_or("topic") {
        "topic" => Box::new(|one, other| one.topic.cmp(&other.topic)),
        "group" => Box::new(|one, other| one.group.cmp(&other.group)),
        "lag" => by(|sample| sample.lag),
        "oldest" => by(|sample| sample.oldest_unacked_ms),
        "in_flight" => by(|sample| sample.counts.in_flight),
        "redelivered" => by(|sample| sample.counts.redelivered),
        "dead_lettered" => by(|sample| sample.counts.dead_lettered),
        other => return Err(unknown_column(other)),
    })
}

fn fits(wanted: &PageQuery, topic: &str, group: Option<&str>) -> bool {
    let has_prefix = wanted
        .prefix
        .as_deref()
        .is_none_or(|prefix| topic.starts_with(prefix));
    let Some(search) = &wanted.search else {
        return has_prefix;
    };
    let search = search.to_lowercase();
    let has = |name: &str| name.to_lowercase().contains(&search);
    has_prefix && (has(topic) || group.is_some_and(has))
}

/// The time of the newest event, where it is kept and the caller may read it.
async fn last_ts(call: &Call, info: &TopicInfo) -> Option<u64> {
    if info.tail_seq == 0 || !call.may_look(&info.name, None) {
        return None;
    }
    let store = call.gateway().bus.store();
    let page = store
        .read(&info.name, ReadFrom::Seq(info.tail_seq), ONE_EVENT)
        .await;
    page.ok()?.events.first().map(|event| event.ts())
}

fn unknown_column(name: &str) -> ApiError {
    bad(format!("sort: there is no column {name:?}"))
}

fn bad(why: String) -> ApiError {
    ApiError::new(Code::BadFrame, why)
}
