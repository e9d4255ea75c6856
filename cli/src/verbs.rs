//! The verbs of the binary, one file each: what it takes, and what it does.

mod completions;
mod dev;
mod serve;
mod token;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A durable event bus: topics, durable groups, leases, acks, redelivery and dead letters, over WebSocket and HTTP.
#[derive(Debug, Parser)]
#[command(name = "prombus", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Serve(serve::Serve),
    Dev(dev::Dev),
    Token(token::Token),
    Verify(verify::Verify),
    Completions(completions::Completions),
}

impl Cli {
    /// Does what was asked for.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let done = |()| ExitCode::SUCCESS;
        match self.verb {
            Verb::Serve(serve) => serve.run(),
            Verb::Dev(dev) => dev.run(),
            Verb::Token(token) => token.run().map(done),
            Verb::Verify(verify) => verify.run(),
            Verb::Completions(completions) => {
                completions.run();
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}
