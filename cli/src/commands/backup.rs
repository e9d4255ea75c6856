//! `backup`: a copy of a log with its topics, groups and state, while a server uses it.

use crate::backup::{Copied, NewFolder, Snapshot, check_same_log, copy_into};
use crate::output::{self, Format};
use crate::progress::count_bytes;
use crate::{file_limit, size};
use anyhow::{Context, bail};
use clap::Args;
use prombus_log::{OpenError, OsFiles, VerifyReport, verify};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copy a log with its topics, groups and state, also while a server uses it; segments that an earlier backup in the
/// same folder has are not copied again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus backup /var/backups/prombus
  prombus backup /var/backups/prombus --from /var/lib/prombus --json")]
pub(super) struct Backup {
    /// The folder of the backup; an earlier backup of the same log in it is replaced
    path: PathBuf,
    /// The folder of the store, on this machine
    #[arg(long, value_name = "FOLDER", default_value = "./prombus-data")]
    from: PathBuf,
    /// Do not read the copy to check it
    #[arg(long)]
    no_verify: bool,
}

impl Backup {
    pub(super) fn run(self, format: Format) -> anyhow::Result<()> {
        file_limit::raise();
        let from = self
            .from
            .to_str()
            .and_then(|text| text.strip_prefix("file:"));
        let from = from.map_or(self.from.as_path(), Path::new);
        let snapshot = Snapshot::open(from)?;
        let earlier = self.earlier(&snapshot)?;
        let new = NewFolder::beside(&self.path)?;
        let lengths = snapshot.files.values().map(|file| file.metadata());
        let total = lengths.map(|data| data.map_or(0, |data| data.len())).sum();
        let bar = count_bytes(Some(total));
        let copied = copy_into(new.path(), snapshot, earlier, &bar)?;
        bar.finish_and_clear();
        let checked = if self.no_verify {
            None
        } else {
            Some(check(new.path())?)
        };
        if let Some(old) = new.replace(&self.path)? {
            fs::remove_dir_all(&old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        self.report(&copied, checked.as_ref(), format)
    }

    /// The earlier backup, where the folder has one. Anything else in it is not overwritten.
    fn earlier(&self, snapshot: &Snapshot) -> anyhow::Result<Option<&Path>> {
        let path = self.path.as_path();
        if !path.exists() {
            return Ok(None);
        }
        if Snapshot::open(path).is_err() {
            let is_empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            if is_empty {
                return Ok(None);
            }
            bail!(
                "{} holds something that is not a backup; choose another folder",
                path.display()
            );
        }
        check_same_log(snapshot, path)?;
        Ok(Some(path))
    }

    fn report(
        &self,
        copied: &Copied,
        checked: Option<&VerifyReport>,
        format: Format,
    ) -> anyhow::Result<()> {
        if format.is_json() {
            return output::json(&json!({
                "backup": self.path,
                "copied_files": copied.copied_files,
                "copied_bytes": copied.copied_bytes,
                "reused_files": copied.reused_files,
                "reused_bytes": copied.reused_bytes,
                "events": checked.map(|report| report.events),
                "verified": checked.is_some(),
            }));
        }
        let verified = match checked {
            Some(report) => format!("; {} events verified", report.events),
            None => String::new(),
        };
        output::line(format_args!(
            "{}: {} copied, {} reused{verified}",
            self.path.display(),
            size::show(copied.copied_bytes),
            size::show(copied.reused_bytes)
        ))
    }
}

/// Reads a copy whole. A torn tail is what was being written at that moment; damage is an error.
pub(super) fn check(path: &Path) -> anyhow::Result<VerifyReport> {
    let files =
        OsFiles::open_read_only(path).with_context(|| format!("cannot open {}", path.display()))?;
    let report = match verify(Arc::new(files)) {
        Err(OpenError::InUse) => bail!("{} is in use by a server", path.display()),
        Err(OpenError::NoLog) => bail!("{} holds no log", path.display()),
        report => report.with_context(|| format!("cannot verify {}", path.display()))?,
    };
    if let Some(first) = report.damage.first() {
        bail!(
            "{} is damaged ({} findings); the first: {first}. `prombus verify` lists them",
            path.display(),
            report.damage_count
        );
    }
    Ok(report)
}
