//! `verify`: reads every record and index of a log that is not in use, and names what is damaged.

use crate::output::{self, Format};
use anyhow::{Context, bail};
use clap::Args;
use prombus_log::{OpenError, OsFiles, VerifyReport, verify};
use prombus_store::Damage;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Check a log on disk, offline: every record and every index. Nothing is changed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus verify ./prombus-data
  prombus verify /var/backups/prombus --json")]
pub(super) struct Verify {
    /// The folder of the log
    #[arg(default_value = "./prombus-data")]
    path: PathBuf,
}

impl Verify {
    /// Exits with 1 if something is damaged.
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let path = self.path.display();
        if !self.path.is_dir() {
            bail!(
                "{path} is not a folder; pass the folder of the store, as in `prombus verify ./prombus-data`"
            );
        }
        let files =
            OsFiles::open_read_only(&self.path).with_context(|| format!("cannot open {path}"))?;
        let report = match verify(Arc::new(files)) {
            Err(OpenError::InUse) => {
                bail!("{path} is in use; stop the server that uses it, or verify a copy")
            }
            Err(OpenError::NoLog) => bail!("{path} holds no log"),
            report => report.with_context(|| format!("cannot read {path}"))?,
        };
        if format.is_json() {
            output::json(&as_json(&report))?;
        } else {
            print(&report)?;
        }
        if is_intact(&report) {
            Ok(ExitCode::SUCCESS)
        } else {
            Ok(ExitCode::FAILURE)
        }
    }
}

fn print(report: &VerifyReport) -> anyhow::Result<()> {
    output::line(format_args!(
        "{} events in {} segments, {} bytes read",
        report.events, report.segments, report.bytes
    ))?;
    let damaged = output::red("damaged");
    for damage in &report.damage {
        output::line(format_args!("{damaged}: {damage}"))?;
    }
    let unlisted = report.damage_count - report.damage.len() as u64;
    if unlisted > 0 {
        output::line(format_args!(
            "{damaged}: {unlisted} more findings are not listed"
        ))?;
    }
    for number in &report.bad_indexes {
        output::line(format_args!(
            "segment {number}: its index is rebuilt when the log is opened"
        ))?;
    }
    if report.torn_tail_bytes > 0 {
        output::line(format_args!(
            "torn tail of {} bytes, never acknowledged; opening truncates it",
            report.torn_tail_bytes
        ))?;
    }
    if is_intact(report) {
        output::line(output::green("intact"))
    } else {
        output::line(format_args!(
            "{damaged}; everything not named above is readable"
        ))
    }
}

fn is_intact(report: &VerifyReport) -> bool {
    report.damage.is_empty()
}

fn as_json(report: &VerifyReport) -> serde_json::Value {
    let damage: Vec<_> = report.damage.iter().map(damage_as_json).collect();
    json!({
        "intact": is_intact(report),
        "events": report.events,
        "segments": report.segments,
        "bytes": report.bytes,
        "damage": damage,
        "damage_count": report.damage_count,
        "torn_tail_bytes": report.torn_tail_bytes,
        "bad_indexes": report.bad_indexes,
    })
}

fn damage_as_json(damage: &Damage) -> serde_json::Value {
    let lost = damage.lost.iter();
    let lost = lost.map(|lost| json!({"topic": lost.topic, "from": lost.from, "to": lost.to}));
    let events = damage.events.iter();
    let events = events.map(|one| json!({"topic": one.topic, "seq": one.seq, "id": one.id}));
    json!({
        "sentence": damage.to_string(),
        "kind": damage.kind.as_str(),
        "segment": damage.segment,
        "last_segment": damage.last_segment,
        "from": damage.from,
        "to": damage.to,
        "lost": lost.collect::<Vec<_>>(),
        "events": events.collect::<Vec<_>>(),
        "more": damage.more,
        "file": damage.file,
    })
}
