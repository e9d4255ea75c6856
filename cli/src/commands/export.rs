//! `export`: a topic's events as NDJSON or a JSON array, streamed.

use crate::progress::watch;
use crate::remote::RemoteArgs;
use crate::{completion, output, time};
use anyhow::Context;
use clap::Args;
use clap_complete::ArgValueCandidates;
use prombus_api::http::ExportQuery;
use std::fs::File;
use std::io::{BufWriter, Write, copy};
use std::path::PathBuf;

/// Write a topic's events to stdout or a file, in the order of time
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus export orders > orders.ndjson
  prombus export orders --since 2026-11-01 --until 2026-11-15 -o orders.ndjson
  prombus export orders --key customer-7 --array")]
pub(super) struct Export {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// Only events from this time on
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    since: Option<u64>,
    /// Only events up to this time
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    until: Option<u64>,
    /// Only events of this key
    #[arg(long)]
    key: Option<String>,
    /// Only events after the one with this id
    #[arg(long, value_name = "ID")]
    after_id: Option<String>,
    /// One JSON array instead of a line for each event
    #[arg(long)]
    array: bool,
    /// Write events of earlier versions of the topic's schema as ones of the latest
    #[arg(long)]
    upcast: bool,
    /// The file to write; stdout without it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Export {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let query = ExportQuery {
            topic: self.topic,
            from_ts: self.since,
            to_ts: self.until,
            ndjson: !self.array,
            after_id: self.after_id,
            key: self.key,
            upcast: self.upcast,
        };
        let path = format!("/export?{}", query.to_query());
        let events = self.remote.remote()?.get_stream(&path)?;
        let mut out: Box<dyn Write> = match &self.output {
            Some(path) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Box::new(BufWriter::new(file))
            }
            None => Box::new(output::stdout()),
        };
        copy(&mut watch(events, None), &mut out).context("the export broke off")?;
        out.flush().context("the export is incomplete")
    }
}
