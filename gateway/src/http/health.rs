//! Whether the server lives, and whether it can take events.

use super::call::Call;
use super::reply;
use crate::denied::Denied;
use axum::http::StatusCode;
use axum::response::Response;
use prombus_api::http::Health;

/// The process answers; that is all this says.
pub(super) async fn live(_: Call) -> Result<Response, Denied> {
    Ok(reply::json(&Health::ok()))
}

/// Whether the store takes writes, those of groups' records too, and the server is not on its way down.
pub(super) async fn ready(call: Call) -> Result<Response, Denied> {
    let gateway = call.gateway();
    if gateway.is_draining() {
        return Ok(failing("the server is going down".to_owned()));
    }
    if let Some(cause) = gateway.bus.store().status().failed {
        return Ok(failing(format!("the store takes no writes: {cause}")));
    }
    Ok(match gateway.bus.unwritten_groups().latest {
        Some(cause) => failing(format!("acknowledgements fail: {cause}")),
        None => reply::json(&Health::ok()),
    })
}

fn failing(reason: String) -> Response {
    reply::with_status(StatusCode::SERVICE_UNAVAILABLE, &Health::failing(reason))
}
