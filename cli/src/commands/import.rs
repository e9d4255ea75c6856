//! `import`: stores exported events again, with their ids and times. Running it twice changes nothing.

use super::bulk_report;
use crate::completion;
use crate::output::Format;
use crate::progress::{input_bytes, watch};
use crate::remote::RemoteArgs;
use anyhow::Context;
use clap::Args;
use clap_complete::ArgValueCandidates;
use prombus_api::http::QueryWriter;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

/// Store events that `export` wrote, keeping their ids and times
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus import orders orders.ndjson
  zcat orders.ndjson.gz | prombus import orders")]
pub(super) struct Import {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The file to read; stdin without it
    file: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Import {
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let query = QueryWriter::default().push("topic", &self.topic).finish();
        let (lines, total): (Box<dyn Read>, _) = match &self.file {
            Some(path) => {
                let file =
                    File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
                let total = input_bytes(&file);
                (Box::new(file), total)
            }
            None => (Box::new(stdin()), input_bytes(&stdin())),
        };
        let remote = self.remote.remote()?;
        let reply = remote.post_lines(&format!("/import?{query}"), watch(lines, total))?;
        bulk_report::print(&reply, format)
    }
}
