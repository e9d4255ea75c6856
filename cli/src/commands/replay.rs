//! `replay`: prints stored events from a position on.

use super::event_format;
use super::position::PositionArgs;
use crate::completion;
use crate::output::Format;
use crate::remote::{Remote, RemoteArgs, read};
use clap::Args;
use clap_complete::ArgValueCandidates;
use prombus::StartAt;
use prombus_api::http::ReadQuery;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most events that one request asks for.
const PAGE_EVENTS: u64 = 1_000;

/// Print stored events, from the earliest or from a position on
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus replay orders -n 10
  prombus replay orders --from -1h --json
  prombus replay orders --seq 17 -n 1")]
pub(super) struct Replay {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    #[command(flatten)]
    position: PositionArgs,
    /// The most events to print
    #[arg(short = 'n', long)]
    limit: Option<u64>,
    /// Print events of earlier versions of the topic's schema as ones of the latest
    #[arg(long)]
    upcast: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Deserialize)]
struct Page {
    events: Vec<Box<RawValue>>,
    next: Option<u64>,
}

impl Replay {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let remote = self.remote.remote()?;
        let mut start = self.position.resolve()?.unwrap_or(StartAt::Earliest);
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 {
            let page = self.page(&remote, start, left.min(PAGE_EVENTS))?;
            for event in &page.events {
                event_format::print(event.get(), format)?;
            }
            left -= page.events.len() as u64;
            match page.next {
                Some(next) if !page.events.is_empty() => start = StartAt::Seq(next),
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn page(&self, remote: &Remote, start: StartAt, limit: u64) -> anyhow::Result<Page> {
        let query = ReadQuery {
            topic: self.topic.clone(),
            start: Some(start),
            limit: Some(limit),
            upcast: self.upcast,
        };
        read(&remote.get_text(&format!("/replay?{}", query.to_query()))?)
    }
}
