//! HTTP: which path is answered by what.

mod health;

use crate::gateway::Gateway;
use axum::Router;
use axum::routing::get;
use std::sync::Arc;

/// All routes, on one gateway.
pub(crate) fn routes(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/livez", get(health::live))
        .with_state(gateway)
}
