//! `verify`: reads a whole log that nobody has open, and says what is damaged.

use anyhow::{Context, bail};
use clap::Args;
use prombus_log::{OsFiles, VerifyReport, verify};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check a log on disk, offline: every record and every index. Nothing is changed
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The folder of the log
    #[arg(default_value = "./prombus-data")]
    path: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Exits with 1 if something is damaged.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let path = self.path.display();
        if !self.path.is_dir() {
            bail!(
                "{path} is not a folder; give the folder of the store, as in `prombus verify ./prombus-data`"
            );
        }
        let files = OsFiles::open(&self.path).with_context(|| {
            format!("cannot open {path}; stop the server that uses it, or verify a copy")
        })?;
        let report = verify(&files).with_context(|| format!("cannot read {path}"))?;
        match self.json {
            true => println!("{}", as_json(&report)),
            false => print(&report),
        }
        Ok(match is_intact(&report) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

fn print(report: &VerifyReport) {
    println!(
        "{} events in {} segments, {} bytes read",
        report.events, report.segments, report.bytes
    );
    for damage in &report.damage {
        println!("damaged: {damage}");
    }
    for damage in &report.state_damage {
        println!("damaged: {damage}");
    }
    for number in &report.bad_indexes {
        println!("segment {number}: its index is made again when the log is opened");
    }
    if report.torn_tail_bytes > 0 {
        println!(
            "{} bytes at the end are not whole and were never acknowledged; opening cuts them off",
            report.torn_tail_bytes
        );
    }
    println!("{}", verdict(report));
}

fn is_intact(report: &VerifyReport) -> bool {
    report.damage.is_empty() && report.state_damage.is_empty()
}

fn verdict(report: &VerifyReport) -> &'static str {
    match is_intact(report) {
        true => "intact",
        false => "damaged; what is not named above is readable",
    }
}

fn as_json(report: &VerifyReport) -> serde_json::Value {
    let mut damage: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    damage.extend_from_slice(&report.state_damage);
    json!({
        "intact": is_intact(report),
        "events": report.events,
        "segments": report.segments,
        "bytes": report.bytes,
        "damage": damage,
        "torn_tail_bytes": report.torn_tail_bytes,
        "bad_indexes": report.bad_indexes,
    })
}
