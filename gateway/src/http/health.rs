//! Whether the server lives, and whether it can take events.

use super::call::Call;
use super::reply;
use crate::denied::Denied;
use axum::http::StatusCode;
use axum::response::Response;
use prombus_api::http::Health;

/// The most findings of damage that are shown, newest first.
const MAX_DAMAGE_SHOWN: usize = 20;

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
    let status = gateway.bus.store().status();
    if let Some(cause) = status.failed {
        return Ok(failing(format!("the store takes no writes: {cause}")));
    }
    if let Some(cause) = gateway.bus.unwritten_groups().latest {
        return Ok(failing(format!("acknowledgements fail: {cause}")));
    }
    // Whoever may ask this need not be allowed to know of topics.
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
