//! `/schedules`: the events that wait to be published.

use super::call::{Call, forbidden};
use super::events::page_limit;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use prombus::PendingSchedule;
use prombus_api::Code;
use prombus_api::http::{PendingSchedule as WireSchedule, SchedulePage, SchedulesQuery};
use serde_json::value::RawValue;

/// The schedules of a topic, or of all topics that the caller may read or administer: they have payloads.
pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    let wanted = SchedulesQuery::parse(&call.query()?)?;
    let topic = wanted.topic.as_deref();
    if let Some(topic) = topic {
        call.allow_looking(topic, None)?;
    }
    let limit = page_limit(wanted.limit)?.events;
    let bus = &call.gateway().bus;
    let page = bus.schedules(topic, wanted.after.as_deref(), limit).await?;
    let visible = page.schedules.into_iter();
    let visible = visible.filter(|found| call.may_look(&found.topic, None));
    let schedules: Result<Vec<WireSchedule>, ApiError> = visible.map(wire_schedule).collect();
    Ok(reply::json(&SchedulePage {
        schedules: schedules?,
        next: page.next,
    }))
}

/// Removes a schedule. Those who may publish to its topic may, and those who administer it.
pub(super) async fn remove(call: Call) -> Result<Response, ApiError> {
    let bus = &call.gateway().bus;
    let topic = bus.pending_schedule(&call.key).await?.topic;
    let may = |action| call.grant.policy.may(action, &topic, None);
    if !may(Action::Publish) && !may(Action::Admin) {
        return Err(forbidden(Action::Publish, &topic, None));
    }
    let removed = bus.unschedule(&call.key).await?;
    Ok(reply::json(&wire_schedule(removed)?))
}

fn wire_schedule(schedule: PendingSchedule) -> Result<WireSchedule, ApiError> {
    let payload = RawValue::from_string(schedule.payload);
    let payload = payload.map_err(|error| ApiError::new(Code::ReadFailed, error.to_string()))?;
    Ok(WireSchedule {
        id: schedule.id,
        topic: schedule.topic,
        due: schedule.due,
        every: schedule.every,
        catch_up: schedule.catch_up,
        key: schedule.key,
        payload,
    })
}
