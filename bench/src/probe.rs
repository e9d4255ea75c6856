//! Measurements that need a process of their own, because they are about its memory. The bench starts itself with
//! `probe`, and the probe prints what it found as JSON.

use crate::bus_work::{consume, file_bus, publish, run as run_on, runtime};
use crate::log_work::{open_log, payloads, topic_at};
use crate::scale::Scale;
use crate::{Outcome, print};
use prombus::{StartAt, SubscribeOptions};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// What opening a log took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) millis: f64,
    pub(crate) resident_bytes: u64,
    /// The most it was at any moment.
    pub(crate) peak_bytes: u64,
}

/// What a group took while it was served, on top of the open bus.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Served {
    pub(crate) resident_bytes: f64,
    pub(crate) peak_bytes: f64,
}

/// Opens the log in `folder` in a process of its own.
pub(crate) fn opened(folder: &Path) -> Outcome<Opened> {
    ask("open", folder)
}

/// Serves a group that is caught up in a process of its own.
pub(crate) fn caught_up(folder: &Path) -> Outcome<Served> {
    ask("caught-up", folder)
}

/// Serves a group that starts at the oldest event in a process of its own.
pub(crate) fn behind(folder: &Path) -> Outcome<Served> {
    ask("behind", folder)
}

/// What such a process does.
pub(crate) fn run(what: &str, folder: &Path) -> Outcome<()> {
    let found = match what {
        "open" => serde_json::to_string(&open(folder)?)?,
        "caught-up" => serde_json::to_string(&serve(folder, StartAt::Latest)?)?,
        "behind" => serde_json::to_string(&serve(folder, StartAt::Earliest)?)?,
        other => return Err(format!("there is no probe {other}").into()),
    };
    print(&found)
}

fn ask<T: for<'a> Deserialize<'a>>(what: &str, folder: &Path) -> Outcome<T> {
    let program = std::env::current_exe()?;
    let output = Command::new(program)
        .arg("probe")
        .arg(what)
        .arg(folder)
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the probe {what} failed: {why}").into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn open(folder: &Path) -> Outcome<Opened> {
    let started = Instant::now();
    let log = open_log(folder, &Scale::full())?;
    let millis = started.elapsed().as_secs_f64() * 1e3;
    let opened = Opened {
        millis,
        resident_bytes: memory_bytes("VmRSS")?,
        peak_bytes: memory_bytes("VmHWM")?,
    };
    log.close()?;
    Ok(opened)
}

/// Publishes some events and delivers as many to a new group, the newest or the oldest ones.
fn serve(folder: &Path, from: StartAt) -> Outcome<Served> {
    let scale = Scale::full();
    let runtime = runtime()?;
    let bus = {
        let _guard = runtime.enter();
        file_bus(folder, &scale)?
    };
    run_on(&runtime, async move {
        let (topic, payloads) = (topic_at(0), payloads());
        let stored = bus.topic(&topic)?.tail_seq;
        let events = scale.behind_events.min(stored);
        // What publishing itself takes is there before and after.
        publish(&bus, &[&topic], &payloads, events).await?;
        let before = memory_bytes("VmRSS")? as f64;
        let options = SubscribeOptions {
            from,
            ..SubscribeOptions::default()
        };
        let subscription = bus.subscribe_ephemeral(&topic, options).await?;
        publish(&bus, &[&topic], &payloads, events).await?;
        consume(&subscription, events).await?;
        let served = Served {
            resident_bytes: memory_bytes("VmRSS")? as f64 - before,
            peak_bytes: memory_bytes("VmHWM")? as f64 - before,
        };
        drop(subscription);
        bus.close().await?;
        Ok(served)
    })
}

/// A figure of this process that Linux counts in kB.
fn memory_bytes(name: &str) -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kilobytes = kilobytes.ok_or_else(|| format!("/proc/self/status does not tell {name}"))?;
    Ok(kilobytes.trim().parse::<u64>()? << 10)
}
