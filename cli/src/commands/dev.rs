//! `dev`: a server in memory with something to look at.

use crate::config::listen::{self, ListenAddresses};
use crate::config::{Config, LogFormat, ProjectorsConfig};
use crate::output::Format;
use crate::{logging, server};
use clap::Args;
use prombus::{Bus, PublishOptions};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use tracing::Level;

/// The processes that seem to run: host, name and pid.
const PROCESSES: [(&str, &str, u32); 3] = [
    ("web-1", "api", 411),
    ("web-2", "api", 387),
    ("work-1", "mailer", 1_203),
];
const BEAT_TOPIC: &str = "heartbeat.received";
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// One of them falls silent for so many beats now and then, long enough to turn stale.
const MOOD_BEATS: u32 = 40;

/// Run a server in memory, with sample heartbeats on heartbeat.received and the states they make in process.state
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus dev
  prombus dev --listen localhost:9000")]
pub(super) struct Dev {
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090", value_parser = listen::parse)]
    listen: ListenAddresses,
}

impl Dev {
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let config = Config {
            listen: self.listen.0,
            store: "memory:".to_owned(),
            projectors: ProjectorsConfig { process: true },
            ..Config::default()
        };
        logging::init(LogFormat::Text, Level::INFO);
        server::run(&config, format, beat)
    }
}

/// Publishes heartbeats until the bus is closed.
async fn beat(bus: Bus) {
    let mut ticks = tokio::time::interval(BEAT_INTERVAL);
    for tick in 0_u32.. {
        ticks.tick().await;
        let is_silent = tick / MOOD_BEATS % 2 == 1;
        for (host, name, pid) in PROCESSES {
            if is_silent && name == "mailer" {
                continue;
            }
            let beat = json!({
                "pid": pid,
                "name": name,
                "host": host,
                "cpu_pct": f64::from((tick * 7 + pid) % 400) / 10.0,
                "mem_mb": 90 + (tick + pid) % 32,
            });
            let key = format!("{host}:{name}:{pid}");
            let options = PublishOptions {
                key: Some(&key),
                ..PublishOptions::default()
            };
            if bus.publish(BEAT_TOPIC, &beat, &options).await.is_err() {
                return;
            }
        }
    }
}
