//! `import`: brings exported events back, with their ids and times. Running it twice changes nothing.

use super::bulk;
use crate::progress::watch;
use crate::remote::RemoteArgs;
use anyhow::Context;
use clap::Args;
use prombus_api::http::QueryWriter;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

/// Store events that `export` wrote, keeping their ids and times
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The topic
    #[arg(value_parser = crate::names::topic)]
    topic: String,
    /// The file to read; stdin without it
    file: Option<PathBuf>,
    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Import {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let query = QueryWriter::default().push("topic", &self.topic).finish();
        let (lines, total): (Box<dyn Read>, _) = match &self.file {
            Some(path) => {
                let about = || format!("cannot read {}", path.display());
                let file = File::open(path).with_context(about)?;
                let bytes = file.metadata().with_context(about)?.len();
                (Box::new(file), Some(bytes))
            }
            None => (Box::new(stdin()), None),
        };
        let remote = self.remote.remote();
        let answer = remote.post_lines(&format!("/import?{query}"), watch(lines, total))?;
        bulk::report(&answer, self.json)
    }
}
