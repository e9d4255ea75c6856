//! `export`: a topic, or a part of it, as a file.

use crate::progress::watch;
use crate::remote::RemoteArgs;
use crate::when;
use anyhow::Context;
use clap::Args;
use prombus_api::http::ExportQuery;
use std::fs::File;
use std::io::{BufWriter, Write, copy, stdout};
use std::path::PathBuf;

/// Write a topic's events to stdout or a file, in the order of time
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The topic
    #[arg(value_parser = crate::names::topic)]
    topic: String,
    /// Only events from this time on
    #[arg(long, value_name = "TIME", value_parser = when::parse, allow_hyphen_values = true)]
    since: Option<u64>,
    /// Only events up to this time
    #[arg(long, value_name = "TIME", value_parser = when::parse, allow_hyphen_values = true)]
    until: Option<u64>,
    /// Only events of this key
    #[arg(long)]
    key: Option<String>,
    /// Only events behind the one with this id
    #[arg(long, value_name = "ID")]
    after_id: Option<String>,
    /// One JSON array instead of a line for each event
    #[arg(long)]
    array: bool,
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
        };
        let path = format!("/export?{}", query.to_query());
        let events = self.remote.remote().get_stream(&path)?;
        let mut out: Box<dyn Write> = match &self.output {
            Some(path) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Box::new(BufWriter::new(file))
            }
            None => Box::new(stdout().lock()),
        };
        copy(&mut watch(events, None), &mut out).context("the export broke off")?;
        out.flush().context("the export was not written whole")
    }
}
