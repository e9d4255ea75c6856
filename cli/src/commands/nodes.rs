//! `nodes`: the servers that share a store.

use crate::output::{self, Format};
use crate::remote::{RemoteArgs, read};
use crate::{escape, table};
use clap::Args;
use prombus_api::http::{Node, NodeList};

/// List the servers that share the store: where they are, when they were last heard of, and how far their copies are
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus nodes
  prombus nodes --json")]
pub(super) struct Nodes {
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Nodes {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let reply = self.remote.remote()?.get_text("/nodes")?;
        if format.is_json() {
            return output::json_text(&reply);
        }
        let list: NodeList = read(&reply)?;
        if list.nodes.is_empty() {
            return output::line(format_args!("the server has its store for itself"));
        }
        let rows: Vec<Vec<String>> = list
            .nodes
            .iter()
            .map(|node| row(node, list.now_ms))
            .collect();
        table::print(
            &[
                "NODE",
                "URL",
                "LAST BEAT",
                "GROUPS",
                "RELAYED",
                "APPLIED",
                "LAG",
            ],
            &rows,
        )
    }
}

fn row(node: &Node, now_ms: u64) -> Vec<String> {
    let this = if node.is_this { " *" } else { "" };
    let url = node.url.as_deref().unwrap_or_default();
    let ago_ms = now_ms.saturating_sub(node.beat_ms);
    vec![
        format!("{}{this}", escape::controls(&node.node)),
        escape::controls(url).into_owned(),
        format!("{}.{} s ago", ago_ms / 1_000, ago_ms % 1_000 / 100),
        node.groups.to_string(),
        node.relayed_groups.to_string(),
        node.applied.to_string(),
        node.lag.to_string(),
    ]
}
