//! Named servers in the user's own configuration, so that nobody types URLs and tokens twice.
//!
//! `$XDG_CONFIG_HOME/prombus/contexts.toml`, else `~/.config/prombus/contexts.toml`; only its owner can read it, for it
//! may hold tokens.

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The longest name of a context.
const MAX_NAME_BYTES: usize = 64;
/// Contexts that one file may have.
const MAX_CONTEXTS: usize = 1_000;

/// All contexts of a user.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Contexts {
    /// The one that commands use where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    pub(crate) contexts: BTreeMap<String, Server>,
}

/// A server, and how it knows who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl Contexts {
    /// Reads the user's file; a missing one has no contexts.
    pub(crate) fn load() -> anyhow::Result<Self> {
        match path() {
            Some(path) => Self::load_from(&path),
            None => Ok(Self::default()),
        }
    }

    fn load_from(path: &Path) -> anyhow::Result<Self> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => bail!("cannot read {}: {error}", path.display()),
        };
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Replaces the user's file.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let path = path().context("no home directory; set HOME or XDG_CONFIG_HOME")?;
        self.save_to(&path)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Through a file beside it, so that a crash leaves the old one or the new one.
    fn save_to(&self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().context("it has no folder")?;
        fs::create_dir_all(folder)?;
        let new = path.with_extension(format!("new-{}", std::process::id()));
        let mut file = private_file(&new)?;
        file.write_all(toml::to_string(self)?.as_bytes())?;
        file.sync_all()?;
        Ok(fs::rename(&new, path)?)
    }

    /// Adds a context, or replaces the one with its name. The first one becomes the current one.
    pub(crate) fn add(&mut self, name: &str, server: Server) -> anyhow::Result<()> {
        check_name(name)?;
        if self.contexts.len() >= MAX_CONTEXTS && !self.contexts.contains_key(name) {
            bail!(
                "there are {MAX_CONTEXTS} contexts already; remove one with `prombus context rm`"
            );
        }
        if self.contexts.is_empty() {
            self.current = Some(name.to_owned());
        }
        self.contexts.insert(name.to_owned(), server);
        Ok(())
    }

    /// The context with this name.
    pub(crate) fn get(&self, name: &str) -> anyhow::Result<&Server> {
        self.contexts.get(name).with_context(|| {
            format!("no context {name:?}; `prombus context ls` lists them, `prombus context add` makes one")
        })
    }

    /// The current context, where there is one.
    pub(crate) fn current(&self) -> anyhow::Result<Option<&Server>> {
        self.current
            .as_deref()
            .map(|name| self.get(name))
            .transpose()
    }

    /// Removes a context. Where it was the current one, there is none afterwards.
    pub(crate) fn remove(&mut self, name: &str) -> anyhow::Result<()> {
        self.get(name)?;
        self.contexts.remove(name);
        if self.current.as_deref() == Some(name) {
            self.current = None;
        }
        Ok(())
    }
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_plain) {
        bail!(
            "invalid context name {name:?}; expected 1 to {MAX_NAME_BYTES} letters, digits, dots, dashes or underscores"
        );
    }
    Ok(())
}

/// Where the file is; `None` for a user without a home.
fn path() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".config")))
        .or_else(|| variable("APPDATA").map(PathBuf::from))?;
    Some(folder.join("prombus").join("contexts.toml"))
}

#[cfg(unix)]
fn private_file(path: &Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

#[cfg(not(unix))]
fn private_file(path: &Path) -> std::io::Result<fs::File> {
    fs::File::create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> Server {
        Server {
            url: url.to_owned(),
            token: Some("secret".to_owned()),
        }
    }

    #[test]
    fn contexts_are_kept_and_the_first_is_current() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prombus").join("contexts.toml");
        assert_eq!(Contexts::load_from(&path).unwrap(), Contexts::default());
        let mut contexts = Contexts::default();
        contexts.add("home", server("http://a:1")).unwrap();
        contexts.add("work", server("http://b:2")).unwrap();
        contexts.save_to(&path).unwrap();
        let mut read = Contexts::load_from(&path).unwrap();
        assert_eq!(read, contexts);
        assert_eq!(read.current().unwrap(), Some(&server("http://a:1")));
        read.remove("home").unwrap();
        assert_eq!(read.current().unwrap(), None);
        assert!(read.remove("home").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contexts.toml");
        Contexts::default().save_to(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn names_are_plain() {
        let mut contexts = Contexts::default();
        for bad in ["", "a b", "a/b", "é", &"x".repeat(65)] {
            assert!(contexts.add(bad, server("http://a")).is_err(), "{bad}");
        }
    }
}
