//! `schema`: the versions of a topic's schema: reading, registering, checking, comparing and removing them.

mod diff;

use crate::confirm::confirm;
use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs, read};
use crate::{completion, table, time};
use anyhow::Context;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use prombus::Compatibility;
use prombus_api::http::{
    RegisteredSchema, RetainedEvents, SchemaCheck, SchemaList, SchemaQuery, SchemaVersion,
    TopicSchemas,
};
use serde_json::json;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use ureq::http::Method;

/// The exit code of a check that found something.
const INCOMPATIBLE: u8 = 1;

/// List, show, register, check, compare or remove the schemas of topics
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus schema ls
  prombus schema register orders order.schema.json --dry-run
  prombus schema diff orders")]
pub(super) struct Schema {
    #[command(subcommand)]
    command: Subcommands,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// List the topics that have schemas
    #[command(after_help = "Examples:
  prombus schema ls
  prombus schema ls --json")]
    Ls,
    /// Show a topic's schema: the latest version, or another one
    #[command(
        disable_version_flag = true,
        after_help = "Examples:
  prombus schema get orders
  prombus schema get orders --version 2"
    )]
    Get {
        /// The topic
        #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
        topic: String,
        /// The version
        #[arg(long = "version", value_name = "N")]
        number: Option<u32>,
    },
    /// Register a new version of a topic's schema; from then on its events are held against it
    #[command(after_help = "Examples:
  prombus schema register orders order.schema.json
  prombus schema register orders order.schema.json --dry-run
  cat order.schema.json | prombus schema register orders --compatibility full")]
    Register {
        #[command(flatten)]
        schema: SchemaArgs,
        /// Check the schema and all retained events, and register nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Say whether a schema may follow the versions that a topic has; exits with 1 where it may not
    #[command(after_help = "Examples:
  prombus schema check orders order.schema.json
  prombus schema check orders order.schema.json --compatibility full_transitive")]
    Check {
        #[command(flatten)]
        schema: SchemaArgs,
    },
    /// Remove a version of a topic's schema, or all of them
    #[command(
        disable_version_flag = true,
        after_help = "Examples:
  prombus schema rm orders --version 2 --yes
  prombus schema rm orders --yes"
    )]
    Rm {
        /// The topic
        #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
        topic: String,
        /// Only this version
        #[arg(long = "version", value_name = "N")]
        number: Option<u32>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Compare two versions of a topic's schema, or one with a file: what changed, and what that means for consumers
    #[command(after_help = "Examples:
  prombus schema diff orders
  prombus schema diff orders --from 1 --to 3
  prombus schema diff orders --file order.schema.json")]
    Diff(diff::Diff),
}

#[derive(Debug, Args)]
struct SchemaArgs {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The file with the JSON Schema; stdin without it
    file: Option<PathBuf>,
    /// What it has to be beside the earlier versions: none, backward, forward, full, or one of these with _transitive
    #[arg(long, value_name = "MODE")]
    compatibility: Option<Compatibility>,
}

impl Schema {
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let remote = self.remote.remote()?;
        let done = |()| ExitCode::SUCCESS;
        match self.command {
            Subcommands::Ls => list(&remote, format).map(done),
            Subcommands::Get { topic, number } => show(&remote, &topic, number, format).map(done),
            Subcommands::Register { schema, dry_run } => schema.register(&remote, dry_run, format),
            Subcommands::Check { schema } => schema.check(&remote, format),
            Subcommands::Rm { topic, number, yes } => {
                remove(&remote, &topic, number, yes, format).map(done)
            }
            Subcommands::Diff(diff) => diff.run(&remote, format).map(done),
        }
    }
}

impl SchemaArgs {
    fn register(&self, remote: &Remote, dry_run: bool, format: Format) -> anyhow::Result<ExitCode> {
        let reply = self.post(remote, "", dry_run)?;
        if dry_run {
            return report(&reply, format);
        }
        if format.is_json() {
            output::json_text(&reply)?;
            return Ok(ExitCode::SUCCESS);
        }
        let registered: RegisteredSchema = read(&reply)?;
        let what = if registered.unchanged {
            "is unchanged"
        } else {
            "was registered"
        };
        output::line(format_args!(
            "{} version {} {what}; new versions have to be: {}",
            registered.topic, registered.version, registered.compatibility
        ))?;
        Ok(ExitCode::SUCCESS)
    }

    fn check(&self, remote: &Remote, format: Format) -> anyhow::Result<ExitCode> {
        report(&self.post(remote, "/check", false)?, format)
    }

    fn post(&self, remote: &Remote, behind: &str, dry_run: bool) -> anyhow::Result<String> {
        let query = SchemaQuery {
            compatibility: self.compatibility.map(|mode| mode.to_string()),
            dry_run,
        };
        let schema = read_schema(self.file.as_deref())?;
        let path = format!("{}{behind}?{}", path(&self.topic), query.to_query());
        remote.send(Method::POST, path.trim_end_matches('?'), schema.as_bytes())
    }
}

fn list(remote: &Remote, format: Format) -> anyhow::Result<()> {
    let reply = remote.get_text("/schemas")?;
    if format.is_json() {
        return output::json_text(&reply);
    }
    let list: SchemaList = read(&reply)?;
    let rows: Vec<Vec<String>> = list
        .schemas
        .into_iter()
        .map(|schema| {
            vec![
                schema.topic,
                schema.latest.to_string(),
                schema.versions.len().to_string(),
                schema.compatibility,
            ]
        })
        .collect();
    table::print(&["topic", "latest", "versions", "compatibility"], &rows)
}

fn show(remote: &Remote, topic: &str, number: Option<u32>, format: Format) -> anyhow::Result<()> {
    let version = number.map_or_else(|| "latest".to_owned(), |number| number.to_string());
    let reply = remote.get_text(&format!("{}/{version}", path(topic)))?;
    if format.is_json() {
        return output::json_text(&reply);
    }
    let found: SchemaVersion = read(&reply)?;
    output::notice(format_args!(
        "{topic} version {}, registered {}",
        found.version,
        time::show(found.ts)
    ));
    output::line(serde_json::to_string_pretty(&found.schema)?)
}

fn remove(
    remote: &Remote,
    topic: &str,
    number: Option<u32>,
    yes: bool,
    format: Format,
) -> anyhow::Result<()> {
    let (what, path) = match number {
        Some(number) => (
            format!("version {number} of the schema of {topic}"),
            format!("{}/{number}", path(topic)),
        ),
        None => (format!("all schemas of {topic}"), path(topic)),
    };
    confirm(&format!("Remove {what}?"), yes)?;
    remote.delete(&path)?;
    if format.is_json() {
        return output::json(&json!({"topic": topic, "version": number, "removed": true}));
    }
    output::notice(format_args!("{what}: removed"));
    Ok(())
}

/// Prints what a check found, and says whether it found nothing.
fn report(reply: &str, format: Format) -> anyhow::Result<ExitCode> {
    let check: SchemaCheck = read(reply)?;
    let code = if check.compatible {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INCOMPATIBLE)
    };
    if format.is_json() {
        output::json_text(reply)?;
        return Ok(code);
    }
    let follows = match check.latest {
        Some(latest) => format!("version {latest} of {}", check.topic),
        None => format!("nothing: {} has no schema yet", check.topic),
    };
    if check.compatible {
        output::line(format_args!(
            "{}: it may follow {follows}",
            check.compatibility
        ))?
    } else {
        output::line(format_args!(
            "{}: it may not follow {follows}",
            check.compatibility
        ))?
    }
    for finding in &check.findings {
        output::line(format_args!(
            "  {} {}: {}",
            finding.rule, finding.path, finding.detail
        ))?;
    }
    if let Some(retained) = &check.retained {
        report_retained(retained)?;
    }
    Ok(code)
}

fn report_retained(retained: &RetainedEvents) -> anyhow::Result<()> {
    output::line(format_args!(
        "retained events: {} of {} do not fit",
        retained.failing, retained.checked
    ))?;
    for event in &retained.first_failing {
        output::line(format_args!(
            "  {} (seq {}) {}: {}",
            event.id, event.seq, event.path, event.reason
        ))?;
    }
    for group in &retained.groups {
        output::line(format_args!(
            "group {}: {} members, {} such events ahead",
            group.group, group.members, group.failing_ahead
        ))?;
    }
    Ok(())
}

/// The text of a schema, from a file or stdin.
fn read_schema(file: Option<&Path>) -> anyhow::Result<String> {
    match file {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        }
        None => {
            let mut text = String::new();
            stdin()
                .read_to_string(&mut text)
                .context("cannot read stdin")?;
            Ok(text)
        }
    }
}

/// All versions of a topic's schema.
fn versions(remote: &Remote, topic: &str) -> anyhow::Result<TopicSchemas> {
    remote.get(&path(topic))
}

fn path(topic: &str) -> String {
    format!("/schemas/{topic}")
}
