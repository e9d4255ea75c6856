//! `diff`: what changed in a topic's keys between two times.

use crate::output::{self, Format};
use crate::remote::RemoteArgs;
use crate::{completion, escape, time};
use clap::Args;
use clap_complete::ArgValueCandidates;
use prombus_api::http::{DiffPage, DiffQuery, StateItem};
use serde::Serialize;

/// Show which keys were added, changed and deleted between two times
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus diff customers --from -1h
  prombus diff customers --from 2026-11-17 --to 2026-11-18 --prefix eu/ --json")]
pub(super) struct Diff {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The earlier time
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    from: u64,
    /// The later time; now where it is left out
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    to: Option<u64>,
    /// Only keys that begin with this
    #[arg(long)]
    prefix: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// One key on a line of its own, for programs.
#[derive(Serialize)]
struct Line<'a> {
    change: &'static str,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a StateItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a StateItem>,
}

impl Diff {
    pub(super) fn run(self, format: Format) -> anyhow::Result<()> {
        let remote = self.remote.remote()?;
        let mut wanted = DiffQuery {
            from: self.from,
            to: self.to,
            prefix: self.prefix,
            ..DiffQuery::default()
        };
        loop {
            let path = format!("/diff/{}?{}", self.topic, wanted.to_query());
            let page: DiffPage = remote.get(&path)?;
            for line in lines(&page) {
                line.print(format)?;
            }
            // All pages are of the same two times.
            wanted.to = Some(page.to);
            match page.next {
                Some(next) => wanted.after = Some(next),
                None => return Ok(()),
            }
        }
    }
}

/// The keys of a page, in their order.
fn lines(page: &DiffPage) -> Vec<Line<'_>> {
    let added = page.added.iter().map(|to| Line {
        change: "added",
        key: &to.key,
        from: None,
        to: Some(to),
    });
    let changed = page.changed.iter().map(|changed| Line {
        change: "changed",
        key: &changed.key,
        from: Some(&changed.from),
        to: Some(&changed.to),
    });
    let deleted = page.deleted.iter().map(|from| Line {
        change: "deleted",
        key: &from.key,
        from: Some(from),
        to: None,
    });
    let mut lines: Vec<Line<'_>> = added.chain(changed).chain(deleted).collect();
    lines.sort_by_key(|line| line.key);
    lines
}

impl Line<'_> {
    fn print(&self, format: Format) -> anyhow::Result<()> {
        if format.is_json() {
            return output::json(self);
        }
        let key = escape::controls(self.key);
        if let Some(from) = self.from {
            let payload = escape::controls(from.payload.get());
            output::line(output::red(&format!("- {key} {payload}")))?;
        }
        if let Some(to) = self.to {
            let payload = escape::controls(to.payload.get());
            output::line(output::green(&format!("+ {key} {payload}")))?;
        }
        Ok(())
    }
}
