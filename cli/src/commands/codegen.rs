//! `codegen`: types for TypeScript or Rust from the schemas of topics.

use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs};
use crate::topic_files::read_all;
use anyhow::Context;
use clap::Args;
use prombus::Pattern;
use prombus_api::http::{SchemaList, SchemaVersion};
use prombus_schema::{Language, Schema, codegen};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Write types for TypeScript or Rust from the schemas of topics
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus codegen --lang ts --out src/topics.ts
  prombus codegen --lang rust --topic 'orders.**'
  prombus codegen --lang ts --from topics/")]
pub(super) struct Codegen {
    /// The language: ts or rust
    #[arg(long)]
    lang: Language,
    /// Only topics that match this pattern
    #[arg(long, value_name = "PATTERN", default_value = "**")]
    topic: String,
    /// Read a folder of topic files instead of a server
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// The file to write; stdout without it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Codegen {
    pub(super) fn run(self, format: Format) -> anyhow::Result<()> {
        let pattern = Pattern::for_topics(&self.topic)?;
        let mut schemas = match &self.from {
            Some(folder) => declared(folder)?,
            None => registered(&self.remote.remote()?)?,
        };
        schemas.retain(|(topic, _)| pattern.matches(topic));
        schemas.sort_by(|(one, _), (other, _)| one.cmp(other));
        let topics: Vec<(&str, &Schema)> = schemas
            .iter()
            .map(|(topic, schema)| (topic.as_str(), schema))
            .collect();
        let text = codegen(self.lang, &topics);
        let Some(path) = &self.out else {
            return if format.is_json() {
                output::json(&json!({"topics": topics.len(), "text": text}))
            } else {
                output::line(text.trim_end())
            };
        };
        std::fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        let (file, count) = (path.display().to_string(), topics.len());
        if format.is_json() {
            output::json(&json!({"topics": count, "file": file}))
        } else {
            output::notice(format_args!("{file}: types of {count} topics"));
            Ok(())
        }
    }
}

fn registered(remote: &Remote) -> anyhow::Result<Vec<(String, Schema)>> {
    let list: SchemaList = remote.get("/schemas")?;
    let schemas = list.schemas.into_iter().map(|summary| {
        let version: SchemaVersion = remote.get(&format!("/schemas/{}/latest", summary.topic))?;
        Ok((summary.topic, Schema::new(version.schema)?))
    });
    schemas.collect()
}

fn declared(folder: &Path) -> anyhow::Result<Vec<(String, Schema)>> {
    let mut schemas = Vec::new();
    for file in read_all(folder)? {
        let about = || file.path.display().to_string();
        if let Some(text) = file.schema_text().with_context(about)? {
            let schema = Schema::parse(&text).with_context(about)?;
            schemas.push((file.topic, schema));
        }
    }
    Ok(schemas)
}
