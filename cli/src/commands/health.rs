//! `health`: whether a server can be used, for health checks of containers.

use crate::output::{self, Format};
use crate::remote::RemoteArgs;
use clap::Args;
use serde_json::json;
use std::time::Duration;

/// How long a health check may take.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Check that a server is ready to store events; needs no token, and fails where it is not
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus health
  prombus health --url https://bus.example")]
pub(super) struct Health {
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Health {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let remote = self.remote.remote_within(Some(TIMEOUT))?;
        remote.get_text("/readyz")?;
        if format.is_json() {
            output::json(&json!({"ready": true, "url": remote.url()}))
        } else {
            output::line(format_args!("{} is ready", remote.url()))
        }
    }
}
