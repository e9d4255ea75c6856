//! `apply`: brings a server's topics and schemas to what a folder of topic files says. It prints a plan first and removes
//! nothing.

mod plan;

use crate::confirm::confirm;
use crate::output::{self, Format};
use crate::remote::RemoteArgs;
use crate::topic_files::read_all;
use anyhow::Context;
use clap::Args;
use plan::{Step, plan};
use serde_json::json;
use std::path::PathBuf;

/// Make the topics and schemas of a server what a folder of topic files says; prints a plan first
///
/// Topics and schemas that no file names stay as they are. Nothing is changed where a schema would be refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus apply -f topics/ --dry-run
  prombus apply -f topics/ --yes")]
pub(super) struct Apply {
    /// The folder
    #[arg(short = 'f', long = "folder", value_name = "DIR")]
    folder: PathBuf,
    /// Print the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Apply {
    pub(super) fn run(self, format: Format) -> anyhow::Result<()> {
        let remote = self.remote.remote()?;
        let steps = plan(&remote, &read_all(&self.folder)?)?;
        if !format.is_json() {
            print(&steps)?;
        }
        let is_applied = !self.dry_run && !steps.is_empty();
        if is_applied {
            let (count, url) = (steps.len(), remote.url());
            confirm(&format!("Make these {count} changes at {url}?"), self.yes)?;
            for (done, step) in steps.iter().enumerate() {
                let sent = remote.send(step.method.clone(), &step.path, &step.body);
                sent.with_context(|| {
                    format!("{step} failed, after {done} of {count} changes were made")
                })?;
            }
        }
        if format.is_json() {
            return output::json(&json!({"steps": steps, "applied": is_applied}));
        }
        if is_applied {
            output::notice(format_args!("{} changes made", steps.len()));
        }
        Ok(())
    }
}

fn print(steps: &[Step]) -> anyhow::Result<()> {
    if steps.is_empty() {
        return output::line("nothing to do: the server has what the files say");
    }
    for step in steps {
        output::line(format_args!("{step} ({})", step.detail))?;
    }
    Ok(())
}
