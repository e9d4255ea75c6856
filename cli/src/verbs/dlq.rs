//! `dlq`: dead letters, and sending them round again.

use crate::confirm::confirm;
use crate::remote::{Remote, RemoteArgs, read};
use crate::{table, when};
use anyhow::bail;
use clap::{Args, Subcommand};
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

/// List, inspect or redrive the dead letters of a topic
#[derive(Debug, Args)]
pub(super) struct Dlq {
    #[command(subcommand)]
    verb: Verb,
    /// Print the server's answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the dead letters of a topic
    Ls {
        /// The topic whose events failed
        #[arg(value_parser = crate::names::topic)]
        topic: String,
    },
    /// Show one dead letter with the history of its attempts
    Show {
        /// The topic whose events failed
        #[arg(value_parser = crate::names::topic)]
        topic: String,
        /// The dead letter's id
        id: String,
    },
    /// Publish dead letters to their topic again
    Redrive(RedriveArgs),
    /// Remove dead letters
    Rm(RemoveArgs),
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// The topic whose events failed
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
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct RedriveArgs {
    /// The topic whose events failed
    #[arg(value_parser = crate::names::topic)]
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
    /// Do not ask
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
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let remote = self.remote.remote();
        match &self.verb {
            Verb::Ls { topic } => self.list(&remote, topic),
            Verb::Show { topic, id } => show(&remote, topic, id),
            Verb::Redrive(args) => self.redrive(&remote, args),
            Verb::Rm(args) => self.remove(&remote, args),
        }
    }

    fn list(&self, remote: &Remote, topic: &str) -> anyhow::Result<ExitCode> {
        let mut rows = Vec::new();
        each_letter(remote, topic, |text| {
            if self.json {
                println!("{text}");
                return Ok(true);
            }
            rows.push(row(text)?);
            Ok(true)
        })?;
        if !self.json {
            let head = ["id", "died", "group", "attempts", "redriven", "error"];
            table::print(&head, &rows);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn remove(&self, remote: &Remote, args: &RemoveArgs) -> anyhow::Result<ExitCode> {
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
        let path = format!("/dlq?{}", query.to_query());
        let answer = remote.delete(&path)?;
        let reply: RemovedLetters = read(&answer)?;
        if self.json {
            println!("{answer}");
        } else {
            println!("{} removed", reply.removed);
            for id in &reply.unknown {
                eprintln!("{id}: no such dead letter");
            }
        }
        Ok(if reply.unknown.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    fn redrive(&self, remote: &Remote, args: &RedriveArgs) -> anyhow::Result<ExitCode> {
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
        let answer = remote.send(Method::POST, "/dlq/redrive", &redrive.to_json())?;
        let reply: RedriveReply = read(&answer)?;
        if self.json {
            println!("{answer}");
        } else {
            match reply.dry_run {
                true => println!("{} dead letters would be published again", reply.matched),
                false => println!("{} of {} published again", reply.redriven, reply.matched),
            }
            for failed in &reply.failed {
                eprintln!("{}: {} ({})", failed.id, failed.error, failed.code);
            }
        }
        Ok(match reply.failed.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
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
            when::show(record.ts),
            unknown(),
            unknown(),
            unknown(),
            why,
        ]);
    };
    let marked: Marked = serde_json::from_str(text)?;
    Ok(vec![
        id,
        when::show(letter.ts),
        letter.group,
        letter.attempts.to_string(),
        if marked.redriven { "yes" } else { "no" }.to_owned(),
        letter.err,
    ])
}

/// Prints one letter, whole.
fn show(remote: &Remote, topic: &str, id: &str) -> anyhow::Result<ExitCode> {
    let mut found = false;
    each_letter(remote, topic, |text| {
        if Record::parse(text)?.id == id {
            found = true;
            let whole: serde_json::Value = serde_json::from_str(text)?;
            println!("{whole:#}");
        }
        Ok(!found)
    })?;
    if !found {
        bail!("{topic} has no dead letter {id}; `prombus dlq ls {topic}` lists them");
    }
    Ok(ExitCode::SUCCESS)
}

/// Goes through all letters, page by page, while `visit` says so.
fn each_letter(
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
