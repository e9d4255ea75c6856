//! Whether the server lives, and whether it can take events.

/// The process answers; that is all this says.
pub(super) async fn live() -> &'static str {
    "ok\n"
}
