//! `topic`: what topics there are, how they are kept, and removing them.

use crate::confirm::confirm;
use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs, read};
use crate::{completion, size, table, time};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use prombus_api::http::{Age, Durability, TopicConfig, TopicInfo, TopicList};
use serde_json::json;
use ureq::http::Method;

/// List, inspect, configure, empty or remove topics
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus topic ls
  prombus topic set heartbeats --durability os --retention 3d --max-bytes 1GiB")]
pub(super) struct Topic {
    #[command(subcommand)]
    command: Subcommands,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// List all topics
    #[command(after_help = "Examples:
  prombus topic ls
  prombus topic ls --json")]
    Ls,
    /// Show one topic
    #[command(after_help = "Examples:
  prombus topic info orders")]
    Info {
        /// The topic
        #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
        topic: String,
    },
    /// Make a topic, or change how it is kept; what is not named stays as it is
    #[command(after_help = "Examples:
  prombus topic set heartbeats --durability os --retention 3d
  prombus topic set states --compaction true --snapshot-topic states.snapshot
  prombus topic set logs --max-bytes 10GiB --max-events none
  prombus topic set orders --partitions 16")]
    Set(Set),
    /// Forget all events of a topic; sequence numbers go on where they were
    #[command(after_help = "Examples:
  prombus topic purge scratch --yes")]
    Purge(RemoveArgs),
    /// Remove a topic with its events and its groups
    #[command(after_help = "Examples:
  prombus topic rm scratch --yes")]
    Rm(RemoveArgs),
}

#[derive(Debug, Args)]
struct Set {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// When a publish is acknowledged: fsync (after fsync) or os (after the write)
    #[arg(long, value_parser = parse_durability)]
    durability: Option<Durability>,
    /// Forget events older than this, e.g. 3d; `none` keeps them
    #[arg(long, value_name = "AGE", value_parser = or_none(time::parse_age))]
    retention: Option<OrNone<Age>>,
    /// Forget the oldest beyond this size, e.g. 1GiB, or `none`
    #[arg(long, value_name = "SIZE", value_parser = or_none(size::parse))]
    max_bytes: Option<OrNone<u64>>,
    /// Forget the oldest beyond so many events, or `none`
    #[arg(long, value_parser = or_none(parse_number))]
    max_events: Option<OrNone<u64>>,
    /// Keep only the latest event of each key
    #[arg(long)]
    compaction: Option<bool>,
    /// Publish the state of each key that changed to this topic, or `none`
    #[arg(long, value_name = "TOPIC", value_parser = or_none(crate::names::topic))]
    snapshot_topic: Option<OrNone<String>>,
    /// How often that happens, e.g. 30s; `none` for the default
    #[arg(long, value_name = "AGE", value_parser = or_none(time::parse_age))]
    snapshot_interval: Option<OrNone<Age>>,
    /// What a new version of its schema has to be beside the earlier ones: none, backward, forward, full, or one of these
    /// with _transitive
    #[arg(long, value_name = "MODE")]
    schema: Option<prombus::Compatibility>,
    /// Spread keys over so many partitions, which the members of a partitioned group share
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1024))]
    partitions: Option<u32>,
    /// Change the number of partitions: keys go to other partitions then, and are not in order across the change
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// A setting that can be taken away.
#[derive(Debug, Clone, Copy)]
enum OrNone<T> {
    None,
    Some(T),
}

impl Topic {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let remote = self.remote.remote()?;
        match &self.command {
            Subcommands::Ls => list(&remote, format),
            Subcommands::Info { topic } => show(&remote.get_text(&path(topic))?, format),
            Subcommands::Set(set) => show(&set.apply(&remote)?, format),
            Subcommands::Purge(RemoveArgs { topic, yes }) => {
                confirm(&format!("Forget all events of {topic}?"), *yes)?;
                remote.send(Method::POST, &format!("{}/purge", path(topic)), b"")?;
                report(topic, "purged", format)
            }
            Subcommands::Rm(RemoveArgs { topic, yes }) => {
                confirm(&format!("Remove {topic} with its events and groups?"), *yes)?;
                remote.delete(&path(topic))?;
                report(topic, "removed", format)
            }
        }
    }
}

/// What was done to a topic, by the name of a flag.
fn report(topic: &str, done: &str, format: Format) -> anyhow::Result<()> {
    if format.is_json() {
        return output::json(&json!({"topic": topic, done: true}));
    }
    output::notice(format_args!("{topic} was {done}"));
    Ok(())
}

const HEADINGS: &[&str] = &["topic", "events", "size", "first", "tail", "kept"];

fn list(remote: &Remote, format: Format) -> anyhow::Result<()> {
    let reply = remote.get_text("/topics")?;
    if format.is_json() {
        return output::json_text(&reply);
    }
    let list: TopicList = read(&reply)?;
    let rows: Vec<Vec<String>> = list.topics.iter().map(row).collect();
    table::print(HEADINGS, &rows)
}

fn show(reply: &str, format: Format) -> anyhow::Result<()> {
    if format.is_json() {
        return output::json_text(reply);
    }
    let info: TopicInfo = read(reply)?;
    table::print(HEADINGS, &[row(&info)])
}

impl Set {
    fn apply(&self, remote: &Remote) -> anyhow::Result<String> {
        let there: TopicList = remote.get("/topics")?;
        let known = there
            .topics
            .into_iter()
            .find(|info| info.topic == self.topic);
        let mut config = known.map_or_else(TopicConfig::default, |info| info.config);
        if let Some(durability) = self.durability {
            config.durability = durability;
        }
        change(&mut config.retention, self.retention);
        change(&mut config.max_bytes, self.max_bytes);
        change(&mut config.max_events, self.max_events);
        if let Some(compaction) = self.compaction {
            config.compaction = compaction;
        }
        change(&mut config.snapshot_topic, self.snapshot_topic.clone());
        change(&mut config.snapshot_interval, self.snapshot_interval);
        if let Some(mode) = self.schema {
            config.schema = Some(mode.to_string());
        }
        config.partitions = self.partitions.or(config.partitions);
        let body = serde_json::to_vec(&config)?;
        let query = if self.force { "?force=true" } else { "" };
        remote.send(Method::PUT, &format!("{}{query}", path(&self.topic)), &body)
    }
}

fn change<T>(setting: &mut Option<T>, wanted: Option<OrNone<T>>) {
    match wanted {
        None => {}
        Some(OrNone::None) => *setting = None,
        Some(OrNone::Some(value)) => *setting = Some(value),
    }
}

fn row(info: &TopicInfo) -> Vec<String> {
    vec![
        info.topic.clone(),
        info.events.to_string(),
        size::show(info.bytes),
        info.first_seq.to_string(),
        info.tail_seq.to_string(),
        kept(&info.config),
    ]
}

/// How a topic is kept, in a few words.
fn kept(config: &TopicConfig) -> String {
    let mut words = vec![match config.durability {
        Durability::Fsync => "fsync".to_owned(),
        Durability::Os => "os".to_owned(),
    }];
    words.extend(config.retention.map(|age| format!("for {age}")));
    words.extend(
        config
            .max_bytes
            .map(|bytes| format!("to {}", size::show(bytes))),
    );
    words.extend(
        config
            .max_events
            .map(|events| format!("to {events} events")),
    );
    words.extend(config.compaction.then(|| "compacted".to_owned()));
    let snapshot = config.snapshot_topic.as_ref();
    words.extend(snapshot.map(|topic| format!("snapshot in {topic}")));
    words.extend(config.partitions.map(|count| format!("{count} partitions")));
    let schema = config.schema.as_ref();
    words.extend(schema.map(|mode| format!("schema {mode}")));
    words.join(", ")
}

fn path(topic: &str) -> String {
    format!("/topics/{topic}")
}

fn parse_durability(text: &str) -> Result<Durability, String> {
    match text {
        "fsync" => Ok(Durability::Fsync),
        "os" => Ok(Durability::Os),
        _ => Err(format!("invalid durability {text:?}; expected fsync or os")),
    }
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("invalid number {text:?}; expected digits or none"))
}

fn or_none<T>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<OrNone<T>, String> + Clone {
    move |text| match text {
        "none" => Ok(OrNone::None),
        text => parse(text).map(OrNone::Some),
    }
}
