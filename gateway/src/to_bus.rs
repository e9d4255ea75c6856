//! Conversions from the options of publishing on the wire, which borrow from the frame, to those of the bus.

use crate::api_error::ApiError;
use prombus::{PublishOptions, Schedule};
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
