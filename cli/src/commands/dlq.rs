//! `dlq`: dead letters, and redriving them.

use crate::confirm::confirm;
use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs, read};
use crate::{completion, escape, table, time};
use anyhow::bail;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use prombus_api::Record;
use prombus_api::http::{
    Body, DeadLetter, QueryWriter, Redrive, RedriveReply, RemoveLettersQuery, RemovedLetters,
    WhichLetters,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::process::ExitCode;
use ureq::http::Method;

/// List, inspect, redrive or remove the dead letters of a topic
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus dlq ls orders
  prombus dlq redrive orders --all --dry-run")]
pub(super) struct Dlq {
    #[command(subcommand)]
    command: Subcommands,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// List the dead letters of a topic
    #[command(after_help = "Examples:
  prombus dlq ls orders --json")]
    Ls {
        /// The topic whose events failed
        #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
        topic: String,
    },
    /// Show one dead letter with the history of its attempts
    #[command(after_help = "Examples:
  prombus dlq show orders 019a8b2c")]
    Show {
        /// The topic whose events failed
        #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
        topic: String,
        /// The dead letter's id
        id: String,
    },
    /// Publish dead letters to their topic again
    #[command(after_help = "Examples:
  prombus dlq redrive orders 019a8b2c
  prombus dlq redrive orders --all --rate 50 --yes")]
    Redrive(RedriveArgs),
    /// Remove dead letters
    #[command(after_help = "Examples:
  prombus dlq rm orders --redriven --yes")]
    Rm(RemoveArgs),
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// The topic whose events failed
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The dead letters' ids
    #[arg(required_unless_present_any = ["all", "redriven"])]
    ids: Vec<String>,
    /// Those that were redriven
    #[arg(long, conflicts_with = "ids")]
    redriven: bool,
    /// All of them
    #[arg(long, conflicts_with_all = ["ids", "redriven"])]
    all: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct RedriveArgs {
    /// The topic whose events failed
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The dead letters' ids
    #[arg(required_unless_present = "all")]
    ids: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Only say how many
    #[arg(long)]
    dry_run: bool,
    /// So many a second
    #[arg(long)]
    rate: Option<u32>,
    /// Another payload, for a single id
    #[arg(long)]
    payload: Option<String>,
    /// Also those that were redriven before
    #[arg(long)]
    force: bool,
    /// To every group of the topic, not only to the one it died in
    #[arg(long)]
    to_all: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// What the listing adds to a letter.
#[derive(Deserialize)]
struct Marked {
    #[serde(default)]
    redriven: bool,
}

#[derive(Deserialize)]
struct Page {
    events: Vec<Box<RawValue>>,
    next: Option<u64>,
}

impl Dlq {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<ExitCode> {
        let remote = self.remote.remote()?;
        match &self.command {
            Subcommands::Ls { topic } => list(&remote, topic, format),
            Subcommands::Show { topic, id } => show(&remote, topic, id, format),
            Subcommands::Redrive(args) => redrive(&remote, args, format),
            Subcommands::Rm(args) => remove(&remote, args, format),
        }
    }
}

fn list(remote: &Remote, topic: &str, format: Format) -> anyhow::Result<ExitCode> {
    let mut rows = Vec::new();
    each_dead_letter(remote, topic, |text| {
        if format.is_json() {
            output::json_text(text)?;
        } else {
            rows.push(row(text)?);
        }
        Ok(true)
    })?;
    if !format.is_json() {
        let headings = ["id", "died", "group", "attempts", "redriven", "error"];
        table::print(&headings, &rows)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(remote: &Remote, args: &RemoveArgs, format: Format) -> anyhow::Result<ExitCode> {
    let (which, what) = if args.all {
        (WhichLetters::All, "all dead letters".to_owned())
    } else if args.redriven {
        (WhichLetters::Redriven, "redriven dead letters".to_owned())
    } else {
        let what = format!("{} dead letters", args.ids.len());
        (WhichLetters::Ids(args.ids.clone()), what)
    };
    confirm(&format!("Remove {what} of {}?", args.topic), args.yes)?;
    let query = RemoveLettersQuery {
        topic: args.topic.clone(),
        which,
    };
    let text = remote.delete(&format!("/dlq?{}", query.to_query()))?;
    let reply: RemovedLetters = read(&text)?;
    if format.is_json() {
        output::json_text(&text)?;
    } else {
        output::line(format_args!("{} removed", reply.removed))?;
        for id in &reply.unknown {
            output::notice(format_args!(
                "{}: no such dead letter",
                escape::controls(id)
            ));
        }
    }
    Ok(exit_code(reply.unknown.is_empty()))
}

fn redrive(remote: &Remote, args: &RedriveArgs, format: Format) -> anyhow::Result<ExitCode> {
    if args.all && !args.dry_run {
        let question = format!("Publish all dead letters of {} again?", args.topic);
        confirm(&question, args.yes)?;
    }
    let ids = args.ids.iter().map(|id| Cow::Borrowed(id.as_str()));
    let redrive = Redrive {
        topic: args.topic.as_str().into(),
        ids: (!args.all).then(|| ids.collect()),
        dry_run: args.dry_run,
        rate: args.rate,
        payload: args.payload.as_deref(),
        force: args.force,
        to_all: args.to_all,
    };
    let text = remote.send(Method::POST, "/dlq/redrive", &redrive.to_json())?;
    let reply: RedriveReply = read(&text)?;
    if format.is_json() {
        output::json_text(&text)?;
    } else {
        if reply.dry_run {
            output::line(format_args!(
                "{} dead letters would be redriven",
                reply.matched
            ))?;
        } else {
            output::line(format_args!(
                "{} of {} redriven",
                reply.redriven, reply.matched
            ))?;
        }
        for failed in &reply.failed {
            let error = escape::controls(&failed.error);
            output::notice(format_args!("{}: {error} ({})", failed.id, failed.code));
        }
    }
    Ok(exit_code(reply.failed.is_empty()))
}

fn exit_code(is_success: bool) -> ExitCode {
    if is_success {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A letter in the table. What is not a letter is listed all the same: anybody may have published it there.
fn row(text: &str) -> anyhow::Result<Vec<String>> {
    let record = Record::parse(text)?;
    let id = record.id.into_owned();
    let Ok(letter) = serde_json::from_str::<DeadLetter>(record.payload) else {
        let unknown = || "-".to_owned();
        let why = "not a dead letter".to_owned();
        return Ok(vec![
            id,
            time::show(record.ts),
            unknown(),
            unknown(),
            unknown(),
            why,
        ]);
    };
    let marked: Marked = serde_json::from_str(text)?;
    Ok(vec![
        id,
        time::show(letter.ts),
        letter.group,
        letter.attempts.to_string(),
        if marked.redriven { "yes" } else { "no" }.to_owned(),
        letter.err,
    ])
}

/// Prints one dead letter with everything in it.
fn show(remote: &Remote, topic: &str, id: &str, format: Format) -> anyhow::Result<ExitCode> {
    let mut found = false;
    each_dead_letter(remote, topic, |text| {
        if Record::parse(text)?.id == id {
            found = true;
            if format.is_json() {
                output::json_text(text)?;
            } else {
                let value: serde_json::Value = serde_json::from_str(text)?;
                for line in format!("{value:#}").lines() {
                    output::line(escape::controls(line))?;
                }
            }
        }
        Ok(!found)
    })?;
    if !found {
        bail!("{topic} has no dead letter {id}; `prombus dlq ls {topic}` lists them");
    }
    Ok(ExitCode::SUCCESS)
}

/// Goes through all letters, page by page, while `visit` says so.
fn each_dead_letter(
    remote: &Remote,
    topic: &str,
    mut visit: impl FnMut(&str) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let mut seq = None::<u64>;
    loop {
        let mut query = QueryWriter::default();
        query.push("topic", topic);
        if let Some(seq) = seq {
            query.push("from", "seq").push("seq", &seq.to_string());
        }
        let page: Page = remote.get(&format!("/dlq?{}", query.finish()))?;
        for event in &page.events {
            if !visit(event.get())? {
                return Ok(());
            }
        }
        match page.next {
            Some(next) if !page.events.is_empty() => seq = Some(next),
            _ => return Ok(()),
        }
    }
}
