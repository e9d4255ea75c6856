//! Conversions from the options of the wire to those of the bus.

use crate::api_error::ApiError;
use prombus::{FieldFilter, Filter, Ordering, Pattern, PublishOptions, StartAt};
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
