//! `schema diff`: two versions line by line, and what is lost from each to the other.

use super::{read_schema, versions};
use crate::completion;
use crate::output::{self, Format};
use crate::remote::Remote;
use anyhow::{Context, bail};
use clap::Args;
use clap_complete::ArgValueCandidates;
use prombus_api::http::TopicSchemas;
use prombus_schema::{Finding, Schema, findings};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The most lines that are compared; longer schemas are shown as a whole.
const MAX_LINES: usize = 4_000;

#[derive(Debug, Args)]
pub(super) struct Diff {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The earlier version; without it, the one before the later
    #[arg(long, value_name = "N")]
    from: Option<u32>,
    /// The later version; without it, the latest
    #[arg(long, value_name = "N")]
    to: Option<u32>,
    /// A file in place of the later version
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    file: Option<PathBuf>,
}

/// A schema with what it is called in the output.
struct Side {
    name: String,
    schema: Value,
}

impl Diff {
    pub(super) fn run(&self, remote: &Remote, format: Format) -> anyhow::Result<()> {
        let known = versions(remote, &self.topic)?;
        let (from, to) = self.sides(&known)?;
        let parse = |side: &Side| {
            Schema::new(side.schema.clone()).with_context(|| format!("{} is no schema", side.name))
        };
        let (old, new) = (parse(&from)?, parse(&to)?);
        let (backward, forward) = (findings(&old, &new), findings(&new, &old));
        if format.is_json() {
            return output::json(&json!({
                "topic": self.topic,
                "from": from.name,
                "to": to.name,
                "backward": backward.iter().map(described).collect::<Vec<_>>(),
                "forward": forward.iter().map(described).collect::<Vec<_>>(),
            }));
        }
        output::line(format_args!("--- {}\n+++ {}", from.name, to.name))?;
        let pretty = |side: &Side| serde_json::to_string_pretty(&side.schema);
        for line in compared(&pretty(&from)?, &pretty(&to)?) {
            output::line(line)?;
        }
        tell(
            "backward",
            "what fitted the earlier one fits the later",
            &backward,
        )?;
        tell(
            "forward",
            "what fits the later one fits the earlier",
            &forward,
        )
    }

    fn sides(&self, known: &TopicSchemas) -> anyhow::Result<(Side, Side)> {
        let to = match &self.file {
            Some(path) => {
                let text = read_schema(Some(path))?;
                let schema = serde_json::from_str(&text)
                    .with_context(|| format!("{} is not JSON", path.display()))?;
                let name = path.display().to_string();
                Side { name, schema }
            }
            None => side(known, self.to.unwrap_or(known.latest))?,
        };
        let before = match (self.from, &self.file) {
            (Some(from), _) => Some(from),
            (None, Some(_)) => Some(known.latest),
            (None, None) => {
                let to = self.to.unwrap_or(known.latest);
                let earlier = known.versions.iter().map(|known| known.version);
                earlier.filter(|version| *version < to).max()
            }
        };
        match before {
            Some(before) => Ok((side(known, before)?, to)),
            None => bail!("{} has no earlier version to compare with", known.topic),
        }
    }
}

fn side(known: &TopicSchemas, number: u32) -> anyhow::Result<Side> {
    let found = known.versions.iter().find(|known| known.version == number);
    let found = found.with_context(|| format!("{} has no schema version {number}", known.topic))?;
    Ok(Side {
        name: format!("{} version {number}", known.topic),
        schema: found.schema.clone(),
    })
}

fn described(finding: &Finding) -> Value {
    json!({"path": finding.path, "rule": finding.rule.as_str(), "detail": finding.detail, "proven": finding.rule.is_proven()})
}

fn tell(direction: &str, meaning: &str, findings: &[Finding]) -> anyhow::Result<()> {
    if findings.is_empty() {
        return output::line(format_args!("{direction} compatible: {meaning}"));
    }
    output::line(format_args!(
        "not {direction} compatible, or it cannot be proven:"
    ))?;
    for finding in findings {
        output::line(format_args!("  {finding}"))?;
    }
    Ok(())
}

/// The lines of both texts, those that only one of them has marked with `-` and `+`.
fn compared(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len().max(new.len()) > MAX_LINES {
        let removed = old.iter().map(|line| format!("- {line}"));
        return removed
            .chain(new.iter().map(|line| format!("+ {line}")))
            .collect();
    }
    // How many lines the rests have in common, from each pair of places on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for other in (0..new.len()).rev() {
            common[at][other] = if old[at] == new[other] {
                common[at + 1][other + 1] + 1
            } else {
                common[at + 1][other].max(common[at][other + 1])
            };
        }
    }
    let (mut at, mut other, mut lines) = (0, 0, Vec::new());
    while at < old.len() || other < new.len() {
        if at < old.len() && other < new.len() && old[at] == new[other] {
            lines.push(format!("  {}", old[at]));
            at += 1;
            other += 1;
        } else if other == new.len()
            || at < old.len() && common[at + 1][other] >= common[at][other + 1]
        {
            lines.push(format!("- {}", old[at]));
            at += 1;
        } else {
            lines.push(format!("+ {}", new[other]));
            other += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_text_only_are_marked() {
        assert_eq!(
            compared("a\nb\nc", "a\nx\nc\nd"),
            ["  a", "- b", "+ x", "  c", "+ d"]
        );
        assert_eq!(compared("", "a"), ["+ a"]);
        assert_eq!(compared("a", "a"), ["  a"]);
    }
}
