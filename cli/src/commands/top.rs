//! `top`: topics with their rates and groups with their lag, live in a terminal or once for programs.

mod sample;
mod screen;

use crate::output::{self, Format};
use crate::remote::RemoteArgs;
use crate::{size, table};
use clap::Args;
use prombus_api::http::Age;
use sample::{Rates, Sample};
use std::io::{IsTerminal, stdout};
use std::time::Duration;

/// Show topics with their rates and groups with their lag, live
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus top
  prombus top --interval 5s
  prombus top --once --json")]
pub(super) struct Top {
    /// How often the server is asked
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::time::parse_age)]
    interval: Age,
    /// Print one sample instead of a live view
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// The shortest interval between two samples.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

impl Top {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let remote = self.remote.remote()?;
        let interval = Duration::from_millis(self.interval.ms).max(MIN_INTERVAL);
        if !self.once && !format.is_json() && stdout().is_terminal() {
            return screen::run(&remote, interval);
        }
        let before = Sample::take(&remote)?;
        wait(interval);
        let now = Sample::take(&remote)?;
        let rates = Rates::between(&before, &now);
        if format.is_json() {
            output::json(&rates.to_json())
        } else {
            print(&rates)
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a sample of real rates takes real time, and nothing else runs meanwhile"
)]
fn wait(interval: Duration) {
    std::thread::sleep(interval);
}

fn print(rates: &Rates) -> anyhow::Result<()> {
    let topics: Vec<Vec<String>> = rates
        .topics
        .iter()
        .map(|topic| {
            vec![
                topic.name.clone(),
                format!("{:.1}", topic.per_second),
                topic.events.to_string(),
                size::show(topic.bytes),
            ]
        })
        .collect();
    table::print(&["topic", "in/s", "events", "size"], &topics)?;
    output::line("")?;
    let groups: Vec<Vec<String>> = rates
        .groups
        .iter()
        .map(|group| {
            vec![
                group.topic.clone(),
                group.name.clone(),
                format!("{:.1}", group.per_second),
                group.lag.to_string(),
                group.in_flight.to_string(),
                group.members.to_string(),
                group.state.as_str().to_owned(),
            ]
        })
        .collect();
    let headings = [
        "topic",
        "group",
        "acked/s",
        "lag",
        "in flight",
        "members",
        "state",
    ];
    table::print(&headings, &groups)
}
