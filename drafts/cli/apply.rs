//! `apply`: brings a server's topics and schemas to what a folder of topic files says. It prints a plan first and removes
//! nothing.

use crate::confirm::confirm;
use crate::declarations::{Declared, read_folder};
use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs, read};
use anyhow::{Context, bail};
use clap::Args;
use prombus_api::http::{SchemaCheck, SchemaList, SchemaQuery, SchemaVersion, TopicConfig, TopicList};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use ureq::http::Method;

/// Make the topics and schemas of a server what a folder of topic files says; prints a plan first
///
/// Topics and versions that no file names stay as they are. Nothing is changed where a schema would be refused.
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

/// One thing to do.
struct Step {
    topic: String,
    /// What, for people and programs.
    action: &'static str,
    detail: String,
    method: Method,
    path: String,
    body: Vec<u8>,
}

impl Apply {
    pub(super) fn run(self, format: Format) -> anyhow::Result<()> {
        let remote = self.remote.remote()?;
        let mut declared = Vec::new();
        for (path, file) in read_folder(&self.folder)? {
            declared.push(file.with_context(|| path.display().to_string())?);
        }
        let steps = plan(&remote, &declared)?;
        print_plan(&steps, self.dry_run, format)?;
        if self.dry_run || steps.is_empty() {
            return Ok(());
        }
        confirm(&format!("Make these {} changes at {}?", steps.len(), remote.url()), self.yes)?;
        for step in &steps {
            let about = || format!("{} {}", step.action, step.topic);
            remote.send(step.method.clone(), &step.path, &step.body).with_context(about)?;
        }
        if !format.is_json() {
            output::notice(format_args!("{} changes made", steps.len()));
        }
        Ok(())
    }
}

/// What has to be done, in the order of the files: a topic before its schema.
fn plan(remote: &Remote, declared: &[Declared]) -> anyhow::Result<Vec<Step>> {
    let topics: TopicList = remote.get("/topics")?;
    let present: BTreeMap<String, TopicConfig> =
        topics.topics.into_iter().map(|info| (info.topic, info.config)).collect();
    let schemas: SchemaList = remote.get("/schemas")?;
    let with_schemas: Vec<String> = schemas.schemas.into_iter().map(|schema| schema.topic).collect();
    let mut steps = Vec::new();
    for one in declared {
        let about = || one.path.display().to_string();
        let topic = one.topic();
        let wanted = one.config().with_context(about)?;
        steps.extend(topic_step(&topic, &wanted, present.get(&topic)));
        if let Some(text) = one.schema_text().with_context(about)? {
            let has_schema = with_schemas.contains(&topic);
            steps.extend(schema_step(remote, &topic, &text, &wanted, has_schema).with_context(about)?);
        }
    }
    Ok(steps)
}

fn topic_step(topic: &str, wanted: &TopicConfig, present: Option<&TopicConfig>) -> Option<Step> {
    let mut wanted = wanted.clone();
    if let Some(present) = present {
        // What a file cannot say stays as it is.
        wanted.partitions = present.partitions;
        wanted.schema = wanted.schema.or_else(|| present.schema.clone());
        if *present == wanted {
            return None;
        }
    }
    let action = if present.is_some() { "change topic" } else { "create topic" };
    let fields = |config: &TopicConfig| serde_json::to_value(config).unwrap_or_default();
    let (before, after) = (present.map(&fields).unwrap_or_default(), fields(&wanted));
    Some(Step {
        topic: topic.to_owned(),
        action,
        detail: changes(&before, &after),
        method: Method::PUT,
        path: format!("/topics/{topic}"),
        body: after.to_string().into_bytes(),
    })
}

/// Which settings change, and from what to what.
fn changes(before: &Value, after: &Value) -> String {
    let names = [before, after].into_iter().filter_map(Value::as_object).flat_map(|map| map.keys());
    let mut names: Vec<&String> = names.collect();
    names.sort();
    names.dedup();
    let shown = |value: Option<&Value>| value.map_or_else(|| "unset".to_owned(), ToString::to_string);
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let changed = changed.map(|name| format!("{name}: {} → {}", shown(before.get(name)), shown(after.get(name))));
    changed.collect::<Vec<_>>().join(", ")
}

fn schema_step(
    remote: &Remote,
    topic: &str,
    text: &str,
    wanted: &TopicConfig,
    has_schema: bool,
) -> anyhow::Result<Option<Step>> {
    if has_schema {
        let latest: SchemaVersion = remote.get(&format!("/schemas/{topic}/latest"))?;
        if serde_json::from_str::<Value>(text).is_ok_and(|schema| schema == latest.schema) {
            return Ok(None);
        }
    }
    let query = SchemaQuery {
        compatibility: wanted.schema.clone(),
        dry_run: false,
    };
    let path = format!("/schemas/{topic}/check?{}", query.to_query());
    let reply = remote.send(Method::POST, path.trim_end_matches('?'), text.as_bytes())?;
    let check: SchemaCheck = read(&reply)?;
    if let Some(reason) = check.reason {
        bail!("the schema of {topic} would be refused: {reason}");
    }
    Ok(Some(Step {
        topic: topic.to_owned(),
        action: "register schema",
        detail: match check.latest {
            Some(latest) => format!("behind version {latest}"),
            None => "the first".to_owned(),
        },
        method: Method::POST,
        path: format!("/schemas/{topic}"),
        body: text.as_bytes().to_vec(),
    }))
}

fn print_plan(steps: &[Step], dry_run: bool, format: Format) -> anyhow::Result<()> {
    if format.is_json() {
        let steps = steps.iter().map(|step| json!({"topic": step.topic, "action": step.action, "detail": step.detail}));
        return output::json(&json!({"steps": steps.collect::<Vec<_>>(), "dry_run": dry_run}));
    }
    if steps.is_empty() {
        return output::line("nothing to do: the server is as the files say");
    }
    for step in steps {
        output::line(format_args!("{} {} ({})", step.action, step.topic, step.detail))?;
    }
    Ok(())
}
