//! `restore`: makes a store of a backup, after checking it.

use super::backup::check;
use crate::backup::{NewFolder, Snapshot, copy_into};
use crate::output::{self, Format};
use crate::progress::count_bytes;
use crate::{file_limit, size};
use anyhow::bail;
use clap::Args;
use prombus_log::{Files, OsFiles};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Make a store of a backup, after checking it; a store that is there is kept aside
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus restore /var/backups/prombus --to /var/lib/prombus
  prombus restore /var/backups/prombus --to ./prombus-data --replace")]
pub(super) struct Restore {
    /// The folder of the backup
    path: PathBuf,
    /// The folder of the store; no server may use it
    #[arg(long, value_name = "FOLDER", default_value = "./prombus-data")]
    to: PathBuf,
    /// Replace a store that is there; it is kept as FOLDER.old
    #[arg(long)]
    replace: bool,
}

impl Restore {
    pub(super) fn run(self, format: Format) -> anyhow::Result<()> {
        file_limit::raise();
        let to = self.to.display();
        let is_there = fs::read_dir(&self.to).is_ok_and(|mut entries| entries.next().is_some());
        if is_there && !self.replace {
            bail!("{to} is not empty; pass --replace to keep it as {to}.old and restore");
        }
        if is_there && is_in_use(&self.to) {
            bail!("{to} is in use; stop the server that uses it");
        }
        let report = check(&self.path)?;
        let snapshot = Snapshot::open(&self.path)?;
        let new = NewFolder::beside(&self.to)?;
        let lengths = snapshot.files.values().map(|file| file.metadata());
        let total = lengths.map(|data| data.map_or(0, |data| data.len())).sum();
        let bar = count_bytes(Some(total));
        let copied = copy_into(new.path(), snapshot, None, &bar)?;
        bar.finish_and_clear();
        let kept = new.replace(&self.to)?;
        if format.is_json() {
            return output::json(&json!({
                "store": self.to,
                "events": report.events,
                "bytes": copied.copied_bytes,
                "kept": kept,
            }));
        }
        output::line(format_args!(
            "{to}: {} events, {}",
            report.events,
            size::show(copied.copied_bytes)
        ))?;
        if let Some(kept) = kept {
            output::notice(format_args!("the store of before is {}", kept.display()));
        }
        Ok(())
    }
}

/// Whether a process has the log open. A folder that cannot be locked for another reason is not.
fn is_in_use(folder: &Path) -> bool {
    let locked = OsFiles::open_read_only(folder).and_then(|files| files.lock());
    locked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}
