//! A folder of topic files: each `.toml` file declares one topic, how it is kept, who owns it and where its schema is.
//! `lint` checks such a folder, `apply` brings a server to what it says.

use crate::size;
use anyhow::{Context, bail};
use prombus::{Compatibility, check_topic};
use prombus_api::http::{Age, Durability, TopicConfig};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The most files that one folder may have.
const MAX_FILES: usize = 10_000;

/// A topic as a file declares it.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    /// The file.
    pub(crate) path: PathBuf,
    pub(crate) entry: TopicFile,
}

/// What a topic file may say.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopicFile {
    /// Its name; without it, the file's.
    topic: Option<String>,
    /// Who is asked about it.
    pub(crate) owner: Option<String>,
    #[serde(default)]
    durability: Durability,
    retention: Option<Age>,
    #[serde(default, deserialize_with = "size::deserialize_option")]
    max_bytes: Option<u64>,
    max_events: Option<u64>,
    #[serde(default)]
    compaction: bool,
    snapshot_topic: Option<String>,
    snapshot_interval: Option<Age>,
    /// What a new version of its schema has to be beside the earlier ones.
    schema: Option<String>,
    /// The file with its schema, beside this one.
    schema_file: Option<PathBuf>,
}

/// The topic files of a folder and its folders, in the order of their paths. A file that cannot be read as one is an
/// error of its own.
pub(crate) fn read_folder(folder: &Path) -> anyhow::Result<Vec<(PathBuf, anyhow::Result<Declared>)>> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    Ok(paths.into_iter().map(|path| {
        let declared = Declared::read(&path);
        (path, declared)
    }).collect())
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let about = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(about)? {
        let entry = entry.with_context(about)?;
        let (path, kind) = (entry.path(), entry.file_type().with_context(about)?);
        if kind.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
        if paths.len() > MAX_FILES {
            bail!("{} has more than {MAX_FILES} topic files", folder.display());
        }
    }
    Ok(())
}

impl Declared {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).context("cannot be read")?;
        let entry = toml::from_str(&text)?;
        Ok(Self {
            path: path.to_owned(),
            entry,
        })
    }

    /// The topic's name.
    pub(crate) fn topic(&self) -> String {
        let stem = self.path.file_stem().and_then(|stem| stem.to_str());
        let own = self.entry.topic.clone();
        own.unwrap_or_else(|| stem.unwrap_or_default().to_owned())
    }

    /// Whether anything bounds how long its events are kept.
    pub(crate) fn is_bounded(&self) -> bool {
        let entry = &self.entry;
        entry.retention.is_some()
            || entry.max_bytes.is_some()
            || entry.max_events.is_some()
            || entry.compaction
    }

    /// The mode that it names.
    pub(crate) fn compatibility(&self) -> anyhow::Result<Option<Compatibility>> {
        let mode = self.entry.schema.as_deref().map(str::parse);
        Ok(mode.transpose()?)
    }

    /// Where its schema is.
    pub(crate) fn schema_path(&self) -> Option<PathBuf> {
        let file = self.entry.schema_file.as_ref()?;
        Some(self.path.parent().unwrap_or(Path::new("")).join(file))
    }

    /// Its schema's text.
    pub(crate) fn schema_text(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = self.schema_path() else {
            return Ok(None);
        };
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("schema_file {} cannot be read", path.display()))?;
        Ok(Some(text))
    }

    /// How the topic is to be kept.
    pub(crate) fn config(&self) -> anyhow::Result<TopicConfig> {
        check_topic(&self.topic())?;
        let entry = &self.entry;
        Ok(TopicConfig {
            durability: entry.durability,
            retention: entry.retention,
            max_bytes: entry.max_bytes,
            max_events: entry.max_events,
            compaction: entry.compaction,
            snapshot_topic: entry.snapshot_topic.clone(),
            snapshot_interval: entry.snapshot_interval,
            schema: self.compatibility()?.map(|mode| mode.to_string()),
            ..TopicConfig::default()
        })
    }
}
