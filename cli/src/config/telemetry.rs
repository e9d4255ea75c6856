//! `[telemetry]`: where spans of events that are part of a trace go.

use serde::Deserialize;

/// Where traces go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TelemetryConfig {
    /// The address of an OpenTelemetry collector that takes OTLP over HTTP; without it nothing is sent.
    pub(crate) otlp_endpoint: Option<String>,
}

impl TelemetryConfig {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Some(endpoint) = &self.otlp_endpoint else {
            return Ok(());
        };
        check_endpoint(endpoint)
    }
}

#[cfg(feature = "otlp")]
fn check_endpoint(endpoint: &str) -> anyhow::Result<()> {
    prombus_gateway::spans::Exporter::check(endpoint)?;
    Ok(())
}

#[cfg(not(feature = "otlp"))]
fn check_endpoint(_: &str) -> anyhow::Result<()> {
    anyhow::bail!(
        "telemetry.otlp_endpoint: this binary was built without OpenTelemetry; build it with --features otlp"
    )
}
