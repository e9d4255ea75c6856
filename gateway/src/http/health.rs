//! Whether the server lives, and whether it can take events.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use hyper::StatusCode;
use prombus_api::http::Health;

/// The most findings of damage that are shown, newest first.
const MAX_DAMAGE_SHOWN: usize = 20;

/// The process answers; that is all this says.
pub(super) async fn live(_: Call) -> Result<Response, ApiError> {
    Ok(reply::json(&Health::ok()))
}

/// Whether the store takes writes, those of groups' records too, and the server is not shutting down.
pub(super) async fn ready(call: Call) -> Result<Response, ApiError> {
    let gateway = call.gateway();
    if gateway.is_draining() {
        return Ok(failing("server is shutting down".to_owned()));
    }
    let status = gateway.bus.store().status();
    if let Some(cause) = status.failed {
        return Ok(failing(format!("store takes no writes: {cause}")));
    }
    if let Some(cause) = gateway.bus.unwritten_groups().latest {
        return Ok(failing(format!("acknowledgements failing: {cause}")));
    }
    // The route needs no token, so it must not name topics.
    let newest = status.damage.iter().rev().take(MAX_DAMAGE_SHOWN);
    let damage: Vec<String> = newest.map(|damage| damage.place().to_string()).collect();
    Ok(reply::json(&Health {
        damage,
        ..Health::ok()
    }))
}

fn failing(reason: String) -> Response {
    reply::with_status(StatusCode::SERVICE_UNAVAILABLE, &Health::failing(reason))
}
