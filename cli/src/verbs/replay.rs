//! `replay`: prints stored events from a place on.

use super::place::PlaceArgs;
use super::show_event;
use crate::remote::{Remote, RemoteArgs, read};
use clap::Args;
use prombus_api::http::ReadQuery;
use prombus_api::options::Position;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most events that one request asks for.
const PAGE_EVENTS: u64 = 1_000;

/// Print stored events, from the earliest or from a place on
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// The topic
    #[arg(value_parser = crate::names::topic)]
    topic: String,
    #[command(flatten)]
    place: PlaceArgs,
    /// The most events to print
    #[arg(short = 'n', long)]
    limit: Option<u64>,
    /// Print each event as a line of JSON, as it is stored
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Deserialize)]
struct Page {
    events: Vec<Box<RawValue>>,
    next: Option<u64>,
}

impl Replay {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let remote = self.remote.remote();
        let mut start = self.place.position()?.unwrap_or(Position::Earliest);
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 {
            let page = self.page(&remote, start, left.min(PAGE_EVENTS))?;
            for event in &page.events {
                show_event::print(event.get(), self.json)?;
            }
            left -= page.events.len() as u64;
            match page.next {
                Some(next) if !page.events.is_empty() => start = Position::Seq(next),
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn page(&self, remote: &Remote, start: Position, limit: u64) -> anyhow::Result<Page> {
        let query = ReadQuery {
            topic: self.topic.clone(),
            start: Some(start),
            limit: Some(limit),
        };
        read(&remote.get_text(&format!("/replay?{}", query.to_query()))?)
    }
}
