//! `group`: where groups stand, why nothing flows to one, and moving or removing them.

use super::place::PlaceArgs;
use crate::confirm::confirm;
use crate::remote::{RemoteArgs, read};
use crate::table;
use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use prombus_api::http::{
    Body, Explanation, GroupChange, GroupInfo, GroupList, GroupQuery, Seek, SeekReply,
};
use prombus_api::options::{Filter, Ordering};
use ureq::http::Method;

/// List, inspect, explain, move or remove groups
#[derive(Debug, Args)]
pub(super) struct Group {
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
    /// List the groups of a topic
    Ls {
        /// The topic
        #[arg(value_parser = crate::names::topic)]
        topic: String,
    },
    /// Show one group with its members
    Info(Named),
    /// Say why nothing is flowing to a group
    Explain(Named),
    /// Set a group's cursor: what lies before is settled, what follows is delivered, again too
    Seek {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        place: PlaceArgs,
        /// Only say what would be redelivered or skipped
        #[arg(long)]
        dry_run: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Change what belongs to a group and not to its members
    Set {
        #[command(flatten)]
        named: Named,
        /// After how many failed deliveries an event is dead
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
    Rm {
        #[command(flatten)]
        named: Named,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Clone, Args)]
struct Named {
    /// The topic
    #[arg(value_parser = crate::names::topic)]
    topic: String,
    /// The group
    group: String,
}

impl Group {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let remote = self.remote.remote();
        match &self.verb {
            Verb::Ls { topic } => {
                let answer = remote.get_text(&format!("/groups?{}", query(topic, None)))?;
                self.print(&answer, |list: GroupList| print_groups(&list.groups))
            }
            Verb::Info(named) => {
                let answer = remote.get_text(&format!("/explain?{}", named.query()))?;
                self.print(&answer, |explanation: Explanation| {
                    print_info(&explanation.group);
                })
            }
            Verb::Explain(named) => {
                let answer = remote.get_text(&format!("/explain?{}", named.query()))?;
                self.print(&answer, |explanation: Explanation| {
                    println!("{}", explanation.sentence);
                })
            }
            Verb::Seek {
                named,
                place,
                dry_run,
                yes,
            } => {
                let answer = self.seek(named, place, *dry_run, *yes)?;
                self.print(&answer, |reply: SeekReply| print_seek(&reply))
            }
            Verb::Set {
                named,
                max_attempts,
                ordering,
                filter,
            } => {
                let filter = filter.as_deref().map(|text| Filter::parse(text.as_bytes()));
                let filter = filter.transpose();
                let change = GroupChange {
                    topic: named.topic.clone(),
                    group: named.group.clone(),
                    max_attempts: *max_attempts,
                    ordering: ordering.as_deref().map(|word| match word {
                        "key" => Ordering::Key,
                        _ => Ordering::None,
                    }),
                    filter: filter.map_err(|refusal| anyhow!("--filter: {}", refusal.message))?,
                };
                let answer = remote.send(Method::PATCH, "/groups", &change.to_json())?;
                self.print(&answer, |info: GroupInfo| print_info(&info))
            }
            Verb::Rm { named, yes } => {
                let question = format!("Remove group {} of {}?", named.group, named.topic);
                confirm(&question, *yes)?;
                remote.delete(&format!("/groups?{}", named.query()))?;
                eprintln!("{} is gone", named.group);
                Ok(())
            }
        }
    }

    fn seek(
        &self,
        named: &Named,
        place: &PlaceArgs,
        dry_run: bool,
        yes: bool,
    ) -> anyhow::Result<String> {
        let to = place
            .position()?
            .context("say where to: --from earliest, latest or a time, --after-id or --seq")?;
        let remote = self.remote.remote();
        let ask = |dry_run: bool| {
            let seek = Seek {
                topic: named.topic.clone(),
                group: named.group.clone(),
                to: to.clone(),
                dry_run,
            };
            remote.send(Method::POST, "/cursors", &seek.to_json())
        };
        if !dry_run {
            let would: SeekReply = read(&ask(true)?)?;
            let question = format!(
                "{} events would be delivered again and {} skipped. Go on?",
                would.redelivered, would.skipped
            );
            confirm(&question, yes)?;
        }
        ask(dry_run)
    }

    fn print<T: serde::de::DeserializeOwned>(
        &self,
        answer: &str,
        show: impl FnOnce(T),
    ) -> anyhow::Result<()> {
        match self.json {
            true => println!("{answer}"),
            false => show(read(answer)?),
        }
        Ok(())
    }
}

impl Named {
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

fn print_groups(groups: &[GroupInfo]) {
    let rows: Vec<Vec<String>> = groups
        .iter()
        .map(|group| {
            vec![
                group.group.clone(),
                group.cursor.to_string(),
                group.tail.to_string(),
                group.lag.to_string(),
                group.in_flight.to_string(),
                group.members.len().to_string(),
            ]
        })
        .collect();
    table::print(
        &["group", "cursor", "tail", "lag", "in flight", "members"],
        &rows,
    );
}

fn print_info(group: &GroupInfo) {
    print_groups(std::slice::from_ref(group));
    let counts = &group.counts;
    println!(
        "\ndelivered {} (again {}), acked {}, nacked {}, expired {}, dead letters {}, skipped by retention {}",
        counts.delivered,
        counts.redelivered,
        counts.acked,
        counts.nacked,
        counts.expired,
        counts.dead_lettered,
        group.skipped
    );
    if group.members.is_empty() {
        return;
    }
    println!();
    let rows: Vec<Vec<String>> = group
        .members
        .iter()
        .map(|member| {
            let state = if member.paused { "paused" } else { "open" };
            vec![
                member.name.clone(),
                state.to_owned(),
                member.in_flight.to_string(),
                member.max_in_flight.to_string(),
            ]
        })
        .collect();
    table::print(&["member", "state", "in flight", "at most"], &rows);
}

fn print_seek(reply: &SeekReply) {
    let is_or_would_be = if reply.dry_run { "would be" } else { "is" };
    println!(
        "the cursor {is_or_would_be} at {}; {} events delivered again, {} skipped",
        reply.cursor, reply.redelivered, reply.skipped
    );
    if reply.beyond_tail {
        println!("the place lies beyond the tail, so the cursor {is_or_would_be} at the tail");
    }
}
