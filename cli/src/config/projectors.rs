//! The `[projectors]` of the configuration.

use serde::Deserialize;

/// Which of the built-in projectors run in the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProjectorsConfig {
    /// The one that turns `heartbeat.received` into `process.state`.
    pub(crate) process: bool,
}
