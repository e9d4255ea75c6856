//! Files as a commit of git has them.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Output};

/// The text of a file in a commit; `None` where that has no such file.
pub(super) fn text(path: &Path, commit: &str) -> anyhow::Result<Option<String>> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is not UTF-8", path.display()))?;
    let named = format!("{commit}^{{commit}}");
    let arguments = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &named,
    ];
    if !git(folder, &arguments)?.status.success() {
        bail!(
            "no commit {commit:?} in the git repository of {}",
            folder.display()
        );
    }
    let shown = git(
        folder,
        &["show", "--end-of-options", &format!("{commit}:./{name}")],
    )?;
    if !shown.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8(shown.stdout);
    let text = text.with_context(|| format!("{commit}:{name} is not UTF-8"))?;
    Ok(Some(text))
}

fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments);
    command.output().context("cannot run git")
}
