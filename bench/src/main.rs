//! Measures prombus. `prombus-bench log` measures the log, the stores and the bus in one process, each figure beside a
//! plain loop that does the least that has to be done, or beside its goal. `prombus-bench server` measures the server
//! under load, `prombus-bench state` snapshots, projections and ack-and-publish transactions, `prombus-bench cluster` several
//! nodes on a shared log.

#![allow(
    clippy::disallowed_methods,
    reason = "reading the time is what a bench is for; nothing is decided by it"
)]

mod arguments;
mod bus_work;
mod cluster;
mod keyed_work;
mod log;
mod log_work;
mod plain;
mod probe;
mod report;
mod scale;
mod server;
mod state;
mod table;

use arguments::{Arguments, Command};
use prombus_bench::{
    Outcome, disk_probe, folder, http, log_progress, payload, print, process, sampling,
};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match Arguments::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(why) => {
            log_progress(&format!("{why}\n\n{}", arguments::USAGE));
            return ExitCode::from(2);
        }
    };
    let outcome = match command {
        Command::Help => print(arguments::USAGE),
        Command::Measure(arguments) => table::measure(&arguments),
        Command::Probe { what, folder } => probe::run(&what, &folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_progress(&format!("prombus-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}
