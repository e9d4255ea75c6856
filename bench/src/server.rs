//! The server under load, as a process of its own: what idle connections cost, whether busy ones get on equally, how
//! fast an export is, how long an event takes, what very many groups and topics cost,
//! what a million schedules cost, and what subscribers that do not read do. `prombus-bench server`.

mod cores;
mod export;
mod fair;
mod groups;
mod idle;
mod latency;
mod pattern;
mod schedules;
mod stalled;

use crate::Outcome;
use crate::http;
use crate::process::Process;
use crate::table::Row;
use prombus_bench::program::find_prombus;
use prombus_client::{Client, ClientOptions};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tokio::runtime::Runtime;

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "idle",
        run: idle::run,
    },
    Row {
        name: "fair",
        run: fair::run,
    },
    Row {
        name: "export",
        run: export::run,
    },
    Row {
        name: "latency",
        run: latency::run,
    },
    Row {
        name: "groups",
        run: groups::run,
    },
    Row {
        name: "pattern",
        run: pattern::run,
    },
    Row {
        name: "schedules",
        run: schedules::run,
    },
    Row {
        name: "stalled",
        run: stalled::run,
    },
    Row {
        name: "cores",
        run: cores::run,
    },
];

const READY: &str = "prombus ready on http://";

/// A server of one row.
pub(crate) struct Served {
    process: Process,
    pub(crate) address: SocketAddr,
}

impl Served {
    /// Starts a server on a folder of its own.
    pub(crate) fn start(folder: &Path) -> Outcome<Self> {
        Self::run(folder, Command::new(find_prombus()?))
    }

    /// The same on a store that others share.
    pub(crate) fn start_on(folder: &Path, store: &str) -> Outcome<Self> {
        Self::run_with(folder, Command::new(find_prombus()?), &["--store", store])
    }

    /// Takes the processor away from it.
    pub(crate) fn pause(&self) -> Outcome<()> {
        self.process.pause()
    }

    /// The same on so many cores of the machine.
    fn start_on_cores(folder: &Path, cores: usize) -> Outcome<Self> {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &format!("0-{}", cores - 1)]);
        command.arg(find_prombus()?);
        Self::run(folder, command)
    }

    fn run(folder: &Path, command: Command) -> Outcome<Self> {
        Self::run_with(folder, command, &[])
    }

    fn run_with(folder: &Path, mut command: Command, arguments: &[&str]) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.args(arguments);
        command.current_dir(folder);
        let (process, line) = Process::start_and_read_line(&mut command)?;
        let address = line.strip_prefix(READY);
        let address = address.and_then(|rest| rest.split_whitespace().next());
        let address = address.ok_or_else(|| format!("prombus says: {line}"))?;
        Ok(Self {
            process,
            address: address.parse()?,
        })
    }

    /// Makes a topic that is acknowledged after the write.
    pub(crate) async fn make_topic(&self, topic: &str) -> Outcome<()> {
        let config = r#"{"durability":"os"}"#;
        http::ask(self.address, &format!("PUT /topics/{topic}"), config).await?;
        Ok(())
    }

    pub(crate) async fn connect(&self) -> Outcome<Client> {
        let url = format!("ws://{}", self.address);
        Ok(Client::connect(&url, ClientOptions::default()).await?)
    }
}

pub(crate) fn runtime() -> Outcome<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    Ok(runtime)
}
