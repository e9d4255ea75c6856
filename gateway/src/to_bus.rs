//! Conversions from the options of the wire to those of the bus, which are alike and apart: `api/` uses no other crate of
//! ours, and the bus has no wire code.

use crate::api_error::ApiError;
use prombus::{FieldFilter, Filter, Ordering, Pattern, PublishOptions, Schedule, StartAt};
use prombus_api::{Code, options};

pub(crate) fn to_bus_publish_options<'a>(
    options: &'a options::PublishOptions<'_>,
) -> PublishOptions<'a> {
    PublishOptions {
        id: options.id.as_deref(),
        ts: options.ts,
        key: options.key.as_deref(),
        headers: &options.headers,
        tags: &options.tags,
        caused_by: &options.caused_by,
        sid: options.sid.as_deref(),
        expect_seq: options.expect_seq,
        expect_key_seq: options.expect_key_seq,
        extras: (),
    }
}

/// When an event is to be published.
pub(crate) fn to_bus_schedule<'a>(options: &'a options::PublishOptions<'_>) -> Schedule<'a> {
    Schedule {
        deliver_at: options.deliver_at,
        delay_ms: options.delay_ms,
        every: options.every.as_deref(),
        catch_up: options.catch_up,
    }
}

/// Refuses the options of an event that is committed by itself, where it is committed with others.
pub(crate) fn check_no_own_commit(options: &options::PublishOptions<'_>) -> Result<(), ApiError> {
    if options.needs_own_commit() {
        Err(ApiError::new(
            Code::BadFrame,
            "deliver_at, delay_ms, every, catch_up and also_publish: not allowed here; publish the event by itself",
        ))
    } else {
        Ok(())
    }
}

pub(crate) fn to_bus_position(position: options::Position) -> StartAt {
    match position {
        options::Position::Latest => StartAt::Latest,
        options::Position::Earliest => StartAt::Earliest,
        options::Position::Ts(ts) => StartAt::Ts(ts),
        options::Position::AfterId(id) => StartAt::AfterId(id),
        options::Position::Seq(seq) => StartAt::Seq(seq),
    }
}

pub(crate) fn to_bus_ordering(ordering: options::Ordering) -> Ordering {
    match ordering {
        options::Ordering::None => Ordering::None,
        options::Ordering::Key => Ordering::Key,
    }
}

pub(crate) fn to_bus_filter(filter: &options::Filter) -> Result<Filter, ApiError> {
    let key = filter.key.as_deref().map(Pattern::new).transpose();
    let key = key.map_err(|error| ApiError::new(Code::BadFrame, format!("filter.key: {error}")))?;
    Ok(Filter::Fields(FieldFilter {
        key,
        headers: filter.headers.clone(),
        tags: filter.tags.clone(),
    }))
}
