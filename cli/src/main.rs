//! The prombus binary: the server, and everything one does with it from a shell. Data goes to stdout, talk to stderr;
//! an error says what to do next and exits with 1, a wrong call with 2.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the room that talks to people"
)]

mod config;
mod confirm;
mod descriptors;
mod jwks;
mod logs;
mod names;
mod progress;
mod remote;
mod running;
mod signals;
mod store;
mod table;
mod verbs;
mod when;

use clap::Parser;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match verbs::Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("prombus: {error:#}");
            ExitCode::FAILURE
        }
    }
}
