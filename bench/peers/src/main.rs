//! prombus beside its peers, NATS JetStream and Redis Streams: each with its own durability promises, through its best
//! client, on the same machine, in turns.

#![allow(
    clippy::disallowed_methods,
    reason = "reading the time is what a bench is for; nothing is decided by it"
)]

mod arguments;
mod chart;
mod figures;
mod goals;
mod limits;
mod machine;
mod programs;
mod publish;
mod report;
mod rows;
mod run;
mod scale;
mod stage;
mod systems;

use arguments::{Arguments, Command};
use prombus_bench::{
    Outcome, disk_probe, folder, http, log_progress, payload, print, process, sampling,
};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match Arguments::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => print(arguments::USAGE),
        Ok(Command::Measure(arguments)) => run::measure(&arguments),
        Err(reason) => {
            log_progress(&format!("{reason}\n\n{}", arguments::USAGE));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_progress(&format!("prombus-bench-peers: {error}"));
            ExitCode::FAILURE
        }
    }
}
