//! The verbs of the binary, one file each: what it takes, and what it does.

mod bench;
mod bulk;
mod completions;
mod dev;
mod dlq;
mod export;
mod group;
mod import;
mod outbox;
mod place;
mod project;
mod publish;
mod replay;
mod serve;
mod show_event;
mod subscribe;
mod token;
mod topic;
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
    #[command(name = "pub")]
    Publish(publish::Publish),
    #[command(name = "sub")]
    Subscribe(subscribe::Subscribe),
    Replay(replay::Replay),
    Export(export::Export),
    Import(import::Import),
    Topic(topic::Topic),
    Group(group::Group),
    Dlq(dlq::Dlq),
    Token(token::Token),
    Project(project::Project),
    Outbox(outbox::Outbox),
    Verify(verify::Verify),
    Bench(bench::Bench),
    Completions(completions::Completions),
}

impl Cli {
    /// Does what was asked for.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let done = |()| ExitCode::SUCCESS;
        match self.verb {
            Verb::Serve(serve) => serve.run(),
            Verb::Dev(dev) => dev.run(),
            Verb::Publish(publish) => publish.run(),
            Verb::Subscribe(subscribe) => subscribe.run().map(done),
            Verb::Replay(replay) => replay.run().map(done),
            Verb::Export(export) => export.run().map(done),
            Verb::Import(import) => import.run(),
            Verb::Topic(topic) => topic.run().map(done),
            Verb::Group(group) => group.run().map(done),
            Verb::Dlq(dlq) => dlq.run(),
            Verb::Token(token) => token.run().map(done),
            Verb::Project(project) => project.run().map(done),
            Verb::Outbox(outbox) => outbox.run(),
            Verb::Verify(verify) => verify.run(),
            Verb::Bench(bench) => bench.run().map(done),
            Verb::Completions(completions) => {
                completions.run();
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}
