//! `group`: where groups are, why nothing flows to one, and moving, pausing or removing them.

mod shadow;

use super::position::PositionArgs;
use crate::confirm::confirm;
use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs, read};
use crate::{completion, escape, table, time};
use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use prombus::{Explanation, FieldFilter, GroupInfo, Ordering};
use prombus_api::http::{
    Body, GroupChange, GroupList, GroupQuery, NamedGroup, Seek, SeekReply, TopicList,
};
use serde::de::DeserializeOwned;
use serde_json::json;
use ureq::http::Method;

/// List, inspect, explain, move, pause or remove groups
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus group ls
  prombus group explain orders billing
  prombus group seek orders billing --from -1h --dry-run")]
pub(super) struct Group {
    #[command(subcommand)]
    command: Subcommands,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// List the groups of a topic, or of all topics
    #[command(after_help = "Examples:
  prombus group ls
  prombus group ls orders --json")]
    Ls {
        /// The topic; all topics without it
        #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
        topic: Option<String>,
    },
    /// Show one group with its members
    #[command(after_help = "Examples:
  prombus group info orders billing")]
    Info(GroupArgs),
    /// Say why nothing is flowing to a group
    #[command(after_help = "Examples:
  prombus group explain orders billing")]
    Explain(GroupArgs),
    /// Set a group's cursor: events before it are settled, events after it are delivered, also again
    #[command(after_help = "Examples:
  prombus group seek orders billing --from earliest --dry-run
  prombus group seek orders billing --from 2026-11-15 --yes")]
    Seek {
        #[command(flatten)]
        group: GroupArgs,
        #[command(flatten)]
        position: PositionArgs,
        /// Only say what would be redelivered or skipped
        #[arg(long)]
        dry_run: bool,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Undo the last seek: the group goes on from where it was before it
    #[command(after_help = "Examples:
  prombus group undo orders billing")]
    Undo(GroupArgs),
    /// Make a throwaway group that is fed as another one was, to try a consumer on real traffic
    #[command(after_help = "Examples:
  prombus group shadow orders billing --from -1h
  prombus group shadow orders billing --from earliest --pace max --ttl 2h")]
    Shadow(shadow::Shadow),
    /// Stop deliveries to all members of a group until it is resumed; leases they hold go on
    #[command(after_help = "Examples:
  prombus group pause orders billing")]
    Pause(GroupArgs),
    /// Let a paused group go on
    #[command(after_help = "Examples:
  prombus group resume orders billing")]
    Resume(GroupArgs),
    /// Change what belongs to a group and not to its members
    #[command(after_help = "Examples:
  prombus group set orders billing --max-attempts 10 --ordering key
  prombus group set orders audit --filter '{\"tags\":[\"vip\"]}'")]
    Set {
        #[command(flatten)]
        group: GroupArgs,
        /// After how many failed deliveries an event is a dead letter
        #[arg(long)]
        max_attempts: Option<u32>,
        /// In which order it gets events: none or key
        #[arg(long, value_parser = ["none", "key"])]
        ordering: Option<String>,
        /// Which events it wants, as JSON: {"key":…,"headers":{…},"tags":[…]}; {} wants all
        #[arg(long)]
        filter: Option<String>,
    },
    /// Remove a group
    #[command(after_help = "Examples:
  prombus group rm orders billing --yes")]
    Rm {
        #[command(flatten)]
        group: GroupArgs,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, Args)]
struct GroupArgs {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The group
    #[arg(add = ArgValueCandidates::new(completion::groups))]
    group: String,
}

impl Group {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let remote = self.remote.remote()?;
        match &self.command {
            Subcommands::Ls { topic } => list(&remote, topic.as_deref(), format),
            Subcommands::Info(group) => {
                let reply = remote.get_text(&format!("/explain?{}", group.query()))?;
                print(&reply, format, |explanation: Explanation| {
                    print_info(&explanation.group)
                })
            }
            Subcommands::Explain(group) => {
                let reply = remote.get_text(&format!("/explain?{}", group.query()))?;
                print(&reply, format, |explanation: Explanation| {
                    output::line(escape::controls(&explanation.sentence))
                })
            }
            Subcommands::Seek {
                group,
                position,
                dry_run,
                yes,
            } => {
                let reply = seek(&remote, group, position, *dry_run, *yes)?;
                print(&reply, format, |reply: SeekReply| print_seek(&reply))
            }
            Subcommands::Undo(group) => {
                let reply = remote.send(Method::POST, "/cursors/undo", &group.body())?;
                print(&reply, format, |reply: SeekReply| print_seek(&reply))
            }
            Subcommands::Shadow(shadow) => shadow.run(&remote, format),
            Subcommands::Pause(group) => {
                let reply = remote.send(Method::POST, "/groups/pause", &group.body())?;
                print(&reply, format, |info: GroupInfo| print_info(&info))
            }
            Subcommands::Resume(group) => {
                let reply = remote.send(Method::POST, "/groups/resume", &group.body())?;
                print(&reply, format, |info: GroupInfo| print_info(&info))
            }
            Subcommands::Set {
                group,
                max_attempts,
                ordering,
                filter,
            } => {
                let filter = filter
                    .as_deref()
                    .map(|text| FieldFilter::parse(text.as_bytes()));
                let filter = filter.transpose();
                let change = GroupChange {
                    topic: group.topic.clone(),
                    group: group.group.clone(),
                    max_attempts: *max_attempts,
                    ordering: ordering.as_deref().map(|word| match word {
                        "key" => Ordering::Key,
                        _ => Ordering::None,
                    }),
                    filter: filter.map_err(|error| anyhow!("--filter: {}", error.message))?,
                };
                let reply = remote.send(Method::PATCH, "/groups", &change.to_json())?;
                print(&reply, format, |info: GroupInfo| print_info(&info))
            }
            Subcommands::Rm { group, yes } => {
                let GroupArgs { topic, group: name } = group;
                confirm(&format!("Remove group {name} of {topic}?"), *yes)?;
                remote.delete(&format!("/groups?{}", group.query()))?;
                if format.is_json() {
                    return output::json(&json!({"topic": topic, "group": name, "removed": true}));
                }
                output::notice(format_args!("{name} was removed"));
                Ok(())
            }
        }
    }
}

/// The groups of one topic, or of all that have any.
fn list(remote: &Remote, topic: Option<&str>, format: Format) -> anyhow::Result<()> {
    if let Some(topic) = topic {
        let reply = remote.get_text(&format!("/groups?{}", query(topic, None)))?;
        return print(&reply, format, |list: GroupList| print_groups(&list.groups));
    }
    let topics: TopicList = remote.get("/topics")?;
    let mut groups = Vec::new();
    for info in topics.topics {
        let list: GroupList = remote.get(&format!("/groups?{}", query(&info.topic, None)))?;
        groups.extend(list.groups);
    }
    if format.is_json() {
        return output::json(&json!({ "groups": groups }));
    }
    let rows: Vec<Vec<String>> = groups
        .iter()
        .map(|group| [vec![group.topic.to_string()], row(group)].concat())
        .collect();
    table::print(&[&["topic"], HEADINGS].concat(), &rows)
}

fn seek(
    remote: &Remote,
    group: &GroupArgs,
    position: &PositionArgs,
    dry_run: bool,
    yes: bool,
) -> anyhow::Result<String> {
    let to = position.resolve()?.context(
        "no position given; pass --from earliest, latest or a time, --after-id or --seq",
    )?;
    let send = |dry_run: bool| {
        let seek = Seek {
            topic: group.topic.clone(),
            group: group.group.clone(),
            to: to.clone(),
            dry_run,
        };
        remote.send(Method::POST, "/cursors", &seek.to_json())
    };
    if !dry_run {
        let preview: SeekReply = read(&send(true)?)?;
        let question = format!(
            "{} events would be redelivered and {} skipped. Go on?",
            preview.effect.redelivered, preview.effect.skipped
        );
        confirm(&question, yes)?;
    }
    send(dry_run)
}

fn print<T: DeserializeOwned>(
    reply: &str,
    format: Format,
    show: impl FnOnce(T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if format.is_json() {
        output::json_text(reply)
    } else {
        show(read(reply)?)
    }
}

impl GroupArgs {
    fn body(&self) -> Vec<u8> {
        let named = NamedGroup {
            topic: self.topic.clone(),
            group: self.group.clone(),
        };
        named.to_json()
    }

    fn query(&self) -> String {
        query(&self.topic, Some(&self.group))
    }
}

fn query(topic: &str, group: Option<&str>) -> String {
    let query = GroupQuery {
        topic: topic.to_owned(),
        group: group.map(str::to_owned),
    };
    query.to_query()
}

const HEADINGS: &[&str] = &["group", "cursor", "tail", "lag", "in flight", "members"];

fn row(group: &GroupInfo) -> Vec<String> {
    vec![
        group.group.to_string(),
        group.cursor.to_string(),
        group.tail.to_string(),
        group.lag.to_string(),
        group.in_flight.to_string(),
        group.members.len().to_string(),
    ]
}

fn print_groups(groups: &[GroupInfo]) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
    table::print(HEADINGS, &rows)
}

fn print_info(group: &GroupInfo) -> anyhow::Result<()> {
    print_groups(std::slice::from_ref(group))?;
    let counts = &group.counts;
    output::line(format_args!(
        "\ndelivered {} (again {}), acked {}, nacked {}, expired {}, dead letters {}, skipped by retention {}",
        counts.delivered,
        counts.redelivered,
        counts.acked,
        counts.nacked,
        counts.expired,
        counts.dead_lettered,
        group.skipped
    ))?;
    if let Some(since_ms) = group.paused_since_ms {
        let since = time::show(since_ms);
        output::line(format_args!(
            "paused since {since}; prombus group resume {} {} lets it go on",
            group.topic, group.group
        ))?;
    }
    if group.members.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let is_relayed = group.members.iter().any(|member| member.node.is_some());
    let rows: Vec<Vec<String>> = group
        .members
        .iter()
        .map(|member| {
            let state = if member.paused { "paused" } else { "open" };
            let mut row = vec![
                member.name.to_string(),
                state.to_owned(),
                member.in_flight.to_string(),
                member.max_in_flight.to_string(),
            ];
            if group.partitions.is_some() {
                row.push(show_partitions(&member.partitions));
            }
            if is_relayed {
                let node = member.node.as_deref().unwrap_or("the owner's");
                row.push(escape::controls(node).into_owned());
            }
            row
        })
        .collect();
    let mut headings = vec!["member", "state", "in flight", "at most"];
    headings.extend(group.partitions.map(|_| "partitions"));
    headings.extend(is_relayed.then_some("node"));
    table::print(&headings, &rows)
}

/// Numbers in ascending order, with ranges for those in a row.
fn show_partitions(partitions: &[u32]) -> String {
    let runs = partitions.chunk_by(|one, next| one + 1 == *next);
    let runs: Vec<String> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            one => one.iter().map(u32::to_string).collect(),
        })
        .collect();
    runs.join(",")
}

fn print_seek(reply: &SeekReply) -> anyhow::Result<()> {
    let is = if reply.dry_run { "would be" } else { "is" };
    output::line(format_args!(
        "the cursor {is} at {}; {} events redelivered, {} skipped",
        reply.effect.cursor, reply.effect.redelivered, reply.effect.skipped
    ))?;
    if reply.effect.beyond_tail {
        output::line(format_args!(
            "the position is beyond the tail, so the cursor {is} at the tail"
        ))?;
    }
    Ok(())
}
