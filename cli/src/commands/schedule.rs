//! `schedule`: events that wait to be published.

use crate::confirm::confirm;
use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs, read};
use crate::{completion, escape, table, time};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use prombus_api::http::{PendingSchedule, SchedulePage, SchedulesQuery, percent_encoded};
use std::process::ExitCode;

/// List or remove events that wait to be published
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus schedule ls reminders
  prombus schedule rm 019a8b2c-0000-7000-8000-000000000000 --yes")]
pub(super) struct Schedule {
    #[command(subcommand)]
    command: Subcommands,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// List the events that wait, of one topic or of all
    #[command(after_help = "Examples:
  prombus schedule ls
  prombus schedule ls reminders --json")]
    Ls {
        /// The topic
        #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
        topic: Option<String>,
    },
    /// Remove events that wait
    #[command(after_help = "Examples:
  prombus schedule rm nightly-report --yes")]
    Rm {
        /// Their ids
        #[arg(required = true)]
        ids: Vec<String>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

impl Schedule {
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let remote = self.remote.remote()?;
        match self.command {
            Subcommands::Ls { topic } => list(&remote, topic, format),
            Subcommands::Rm { ids, yes } => remove(&remote, &ids, yes, format),
        }
    }
}

fn list(remote: &Remote, topic: Option<String>, format: Format) -> anyhow::Result<ExitCode> {
    let mut wanted = SchedulesQuery {
        topic,
        ..SchedulesQuery::default()
    };
    let mut rows = Vec::new();
    loop {
        let page: SchedulePage = remote.get(&format!("/schedules?{}", wanted.to_query()))?;
        for found in page.schedules {
            if format.is_json() {
                output::json(&found)?
            } else {
                rows.push(row(&found))
            }
        }
        match page.next {
            Some(next) => wanted.after = Some(next),
            None => break,
        }
    }
    if !format.is_json() {
        table::print(&["ID", "TOPIC", "DUE", "EVERY", "KEY", "PAYLOAD"], &rows)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(found: &PendingSchedule) -> Vec<String> {
    vec![
        shown(&found.id),
        found.topic.clone(),
        time::show(found.due),
        found.every.as_deref().map(shown).unwrap_or_default(),
        found.key.as_deref().map(shown).unwrap_or_default(),
        shown(found.payload.get()),
    ]
}

/// A text of a user, for a terminal.
fn shown(text: &str) -> String {
    escape::controls(text).into_owned()
}

fn remove(remote: &Remote, ids: &[String], yes: bool, format: Format) -> anyhow::Result<ExitCode> {
    let what = match ids {
        [id] => format!("Remove schedule {id}?"),
        ids => format!("Remove {} schedules?", ids.len()),
    };
    confirm(&what, yes)?;
    for id in ids {
        let path = format!("/schedules/{}", percent_encoded(id));
        let removed = remote.delete(&path)?;
        if format.is_json() {
            output::json_text(&removed)?
        } else {
            let removed: PendingSchedule = read(&removed)?;
            let id = shown(&removed.id);
            output::line(format_args!("removed {id} of {}", removed.topic))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
