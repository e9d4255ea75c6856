//! `codegen`: types for TypeScript or Rust from the schemas of all topics.

use crate::declarations::read_folder;
use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs};
use anyhow::Context;
use clap::Args;
use prombus::Pattern;
use prombus_api::http::{SchemaList, SchemaVersion};
use prombus_schema::{Language, Schema, codegen};
use serde_json::json;
use std::path::PathBuf;

/// Write types for all topics from their schemas
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
    /// Read a folder of topic files in place of a server
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
        let topics: Vec<(&str, &Schema)> = schemas.iter().map(|(topic, schema)| (topic.as_str(), schema)).collect();
        let text = codegen(self.lang, &topics);
        let Some(path) = &self.out else {
            return output::line(text.trim_end());
        };
        std::fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        if format.is_json() {
            return output::json(&json!({"file": path.display().to_string(), "topics": topics.len()}));
        }
        output::notice(format_args!("{}: types of {} topics", path.display(), topics.len()));
        Ok(())
    }
}

fn registered(remote: &Remote) -> anyhow::Result<Vec<(String, Schema)>> {
    let list: SchemaList = remote.get("/schemas")?;
    let mut schemas = Vec::new();
    for summary in list.schemas {
        let version: SchemaVersion = remote.get(&format!("/schemas/{}/latest", summary.topic))?;
        schemas.push((summary.topic, Schema::new(version.schema)?));
    }
    Ok(schemas)
}

fn declared(folder: &std::path::Path) -> anyhow::Result<Vec<(String, Schema)>> {
    let mut schemas = Vec::new();
    for (path, file) in read_folder(folder)? {
        let about = || path.display().to_string();
        let file = file.with_context(about)?;
        if let Some(text) = file.schema_text().with_context(about)? {
            schemas.push((file.topic(), Schema::parse(&text).with_context(about)?));
        }
    }
    Ok(schemas)
}
