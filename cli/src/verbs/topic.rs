//! `topic`: what topics there are, how they are kept, and removing them.

use crate::confirm::confirm;
use crate::remote::{Remote, RemoteArgs, read};
use crate::table;
use clap::{Args, Subcommand};
use prombus_api::http::{Age, Durability, TopicConfig, TopicInfo, TopicList};
use ureq::http::Method;

/// List, inspect, configure, empty or remove topics
#[derive(Debug, Args)]
pub(super) struct Topic {
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
    /// List all topics
    Ls,
    /// Show one topic
    Info {
        /// The topic
        #[arg(value_parser = crate::names::topic)]
        topic: String,
    },
    /// Make a topic, or change how it is kept; what is not named stays as it is
    Set(Set),
    /// Forget all events of a topic; positions go on where they were
    Purge(Gone),
    /// Remove a topic with its events and its groups
    Rm(Gone),
}

#[derive(Debug, Args)]
struct Set {
    /// The topic
    #[arg(value_parser = crate::names::topic)]
    topic: String,
    /// When a publish is answered: fsync or os
    #[arg(long, value_parser = parse_durability)]
    durability: Option<Durability>,
    /// Forget events older than this, e.g. 3d; `none` keeps them
    #[arg(long, value_name = "AGE", value_parser = or_none(parse_age))]
    retention: Option<OrNone<Age>>,
    /// Forget the oldest beyond so many bytes, or `none`
    #[arg(long, value_parser = or_none(parse_number))]
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
    #[arg(long, value_name = "AGE", value_parser = or_none(parse_age))]
    snapshot_interval: Option<OrNone<Age>>,
}

#[derive(Debug, Args)]
struct Gone {
    /// The topic
    #[arg(value_parser = crate::names::topic)]
    topic: String,
    /// Do not ask
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
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let remote = self.remote.remote();
        match &self.verb {
            Verb::Ls => self.list(&remote),
            Verb::Info { topic } => self.show(&remote.get_text(&path(topic))?),
            Verb::Set(set) => self.show(&set.apply(&remote)?),
            Verb::Purge(gone) => {
                let question = format!("Forget all events of {}?", gone.topic);
                confirm(&question, gone.yes)?;
                remote.send(Method::POST, &format!("{}/purge", path(&gone.topic)), b"")?;
                eprintln!("{} is empty", gone.topic);
                Ok(())
            }
            Verb::Rm(gone) => {
                let question = format!("Remove {} with its events and groups?", gone.topic);
                confirm(&question, gone.yes)?;
                remote.delete(&path(&gone.topic))?;
                eprintln!("{} is gone", gone.topic);
                Ok(())
            }
        }
    }

    fn list(&self, remote: &Remote) -> anyhow::Result<()> {
        let answer = remote.get_text("/topics")?;
        if self.json {
            println!("{answer}");
            return Ok(());
        }
        let list: TopicList = read(&answer)?;
        let rows: Vec<Vec<String>> = list.topics.iter().map(row).collect();
        table::print(
            &["topic", "events", "bytes", "first", "tail", "kept"],
            &rows,
        );
        Ok(())
    }

    fn show(&self, answer: &str) -> anyhow::Result<()> {
        if self.json {
            println!("{answer}");
            return Ok(());
        }
        let info: TopicInfo = read(answer)?;
        table::print(
            &["topic", "events", "bytes", "first", "tail", "kept"],
            &[row(&info)],
        );
        Ok(())
    }
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
        let body = serde_json::to_vec(&config)?;
        remote.send(Method::PUT, &path(&self.topic), &body)
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
        info.bytes.to_string(),
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
    words.extend(config.max_bytes.map(|bytes| format!("to {bytes} bytes")));
    words.extend(
        config
            .max_events
            .map(|events| format!("to {events} events")),
    );
    words.extend(config.compaction.then(|| "compacted".to_owned()));
    let snapshot = config.snapshot_topic.as_ref();
    words.extend(snapshot.map(|topic| format!("snapshot in {topic}")));
    words.join(", ")
}

fn path(topic: &str) -> String {
    format!("/topics/{topic}")
}

fn parse_durability(text: &str) -> Result<Durability, String> {
    match text {
        "fsync" => Ok(Durability::Fsync),
        "os" => Ok(Durability::Os),
        _ => Err("it is fsync or os".to_owned()),
    }
}

fn parse_age(text: &str) -> Result<Age, String> {
    Age::parse(text).ok_or_else(|| "an age is like 30s, 12h or 3d, or none".to_owned())
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "it is a number, or none".to_owned())
}

fn or_none<T>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<OrNone<T>, String> + Clone {
    move |text| match text {
        "none" => Ok(OrNone::None),
        text => parse(text).map(OrNone::Some),
    }
}
