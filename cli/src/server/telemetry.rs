//! Sends spans to an OpenTelemetry collector, where one is named.

use crate::config::TelemetryConfig;
use prombus_gateway::spans::{Exporter, Spans};

/// Where spans are put, and the task that sends them.
pub(super) fn start(config: &TelemetryConfig) -> anyhow::Result<(Option<Spans>, Option<Exporter>)> {
    let Some(endpoint) = &config.otlp_endpoint else {
        return Ok((None, None));
    };
    let (spans, exporter) = Exporter::start(endpoint)?;
    tracing::info!(endpoint, "spans of sampled traces are sent by OTLP");
    Ok((Some(spans), Some(exporter)))
}
