//! A folder of topic files: each `.toml` file declares one topic, how it is kept, who owns it and where its schema is.
//! `lint` checks such a folder, `apply` brings a server to what it says, and `codegen` reads its schemas.

use crate::config::TopicEntry;
use anyhow::{Context, bail};
use prombus::Compatibility;
use prombus_api::http::TopicConfig;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The most files that one folder may have.
const MAX_FILES: usize = 10_000;
/// How deep folders may be nested.
const MAX_DEPTH: usize = 32;

/// A topic as a file declares it.
#[derive(Debug, Clone)]
pub(crate) struct TopicFile {
    /// The file.
    pub(crate) path: PathBuf,
    /// The topic's name: the one in the file, else the file's own.
    pub(crate) topic: String,
    /// Who is asked about it.
    pub(crate) owner: Option<String>,
    /// How it is kept, as in `[[topics]]` of the configuration.
    entry: TopicEntry,
    /// The file with its schema, beside this one.
    schema_file: Option<PathBuf>,
}

/// The topic files of a folder and of the folders in it, in the order of their paths. A file that is none is an error of
/// its own.
pub(crate) fn read_folder(
    folder: &Path,
) -> anyhow::Result<Vec<(PathBuf, anyhow::Result<TopicFile>)>> {
    let mut paths = Vec::new();
    collect(folder, 0, &mut paths)?;
    paths.sort();
    let files = paths.into_iter().map(|path| {
        let file = TopicFile::read(&path);
        (path, file)
    });
    Ok(files.collect())
}

/// The same for a caller that needs all of them.
pub(crate) fn read_all(folder: &Path) -> anyhow::Result<Vec<TopicFile>> {
    let files = read_folder(folder)?.into_iter();
    let files = files.map(|(path, file)| file.with_context(|| path.display().to_string()));
    files.collect()
}

fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let about = || format!("cannot read {}", folder.display());
    if depth > MAX_DEPTH {
        bail!("{} is nested deeper than {MAX_DEPTH}", folder.display());
    }
    for entry in fs::read_dir(folder).with_context(about)? {
        let entry = entry.with_context(about)?;
        let (path, kind) = (entry.path(), entry.file_type().with_context(about)?);
        if kind.is_dir() {
            collect(&path, depth + 1, paths)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            paths.push(path);
        }
        if paths.len() > MAX_FILES {
            bail!("{} has more than {MAX_FILES} topic files", folder.display());
        }
    }
    Ok(())
}

impl TopicFile {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).context("cannot be read")?;
        let mut table: Table = toml::from_str(&text)?;
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let topic = match take_text(&mut table, "topic")? {
            Some(topic) => topic,
            None => stem.unwrap_or_default().to_owned(),
        };
        let owner = take_text(&mut table, "owner")?;
        let schema_file = take_text(&mut table, "schema_file")?.map(PathBuf::from);
        for server_only in ["name", "publish", "index_headers"] {
            if table.contains_key(server_only) {
                bail!("{server_only}: not allowed in a topic file");
            }
        }
        table.insert("name".to_owned(), Value::String(topic.clone()));
        Ok(Self {
            path: path.to_owned(),
            topic,
            owner: owner.filter(|owner| !owner.trim().is_empty()),
            entry: table.try_into()?,
            schema_file,
        })
    }

    /// Whether anything bounds how much is kept of it.
    pub(crate) fn is_bounded(&self) -> bool {
        let config = self.entry.config();
        config.retention_ms.is_some()
            || config.max_bytes.is_some()
            || config.max_events.is_some()
            || config.compaction
    }

    /// Refuses settings that no topic can have.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if !self.entry.is_one() {
            bail!(
                "topic {:?}: a topic file declares one topic, not a pattern",
                self.topic
            );
        }
        self.entry.check()
    }

    /// What a new version of its schema has to be beside the earlier ones, where the file says it.
    pub(crate) fn compatibility(&self) -> Option<Compatibility> {
        self.entry.config().schema
    }

    /// How the topic is to be kept.
    pub(crate) fn config(&self) -> TopicConfig {
        self.entry.wire_config()
    }

    /// Where its schema is.
    pub(crate) fn schema_path(&self) -> Option<PathBuf> {
        let file = self.schema_file.as_ref()?;
        let folder = self.path.parent().unwrap_or(Path::new(""));
        Some(folder.join(file))
    }

    /// Its schema's text.
    pub(crate) fn schema_text(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = self.schema_path() else {
            return Ok(None);
        };
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read schema_file {}", path.display()))?;
        Ok(Some(text))
    }
}

/// Takes a text out of the table, so that what is left are the topic's settings.
fn take_text(table: &mut Table, name: &str) -> anyhow::Result<Option<String>> {
    match table.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => bail!("{name}: expected a string, not {}", other.type_str()),
    }
}
