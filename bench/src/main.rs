//! Measures prombus. `prombus-bench log` measures the log, the stores and the bus in one process, each figure beside a
//! plain loop that does the least that has to be done, or beside its goal. `prombus-bench server` measures the server
//! under load, `prombus-bench state` snapshots, projections and steps, `prombus-bench peers` the server beside others.

#![allow(
    clippy::disallowed_methods,
    reason = "reading the time is what a bench is for; nothing is decided by it"
)]

mod arguments;
mod bus_work;
mod disk_probe;
mod folder;
mod keyed_work;
mod log;
mod log_work;
mod peers;
mod plain;
mod probe;
mod report;
mod sampling;
mod scale;
mod server;
mod state;
mod table;

use arguments::{Arguments, Command};
use std::io::Write;
use std::process::ExitCode;

/// Whatever goes wrong while measuring ends the run, so its text is all that is needed.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let command = match Arguments::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(why) => {
            tell(&format!("{why}\n\n{}", arguments::USAGE));
            return ExitCode::from(2);
        }
    };
    let outcome = match command {
        Command::Help => print(arguments::USAGE),
        Command::Measure(arguments) if arguments.table.as_deref() == Some("peers") => {
            peers::measure(&arguments)
        }
        Command::Measure(arguments) => table::measure(&arguments),
        Command::Probe { what, folder } => probe::run(&what, &folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("prombus-bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes to whoever watches the run; the figures themselves go to standard output.
fn tell(text: &str) {
    // A watcher that has gone away does not stop the measuring.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

fn print(text: &str) -> Outcome<()> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}
