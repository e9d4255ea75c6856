//! The commands of the binary, one file each: what it takes, and what it does.

mod apply;
mod backup;
mod bench;
mod bulk_report;
mod changefeed;
mod codegen;
mod completions;
mod context;
mod database;
mod dev;
mod diff;
mod dlq;
mod event_format;
mod export;
mod group;
mod health;
mod import;
mod lint;
mod nodes;
mod outbox;
mod position;
mod project;
mod publish;
mod replay;
mod restore;
mod schedule;
mod schema;
mod serve;
mod subscribe;
mod token;
mod top;
mod topic;
mod verify;

use crate::output::Format;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A durable event bus: topics, durable groups, leases, acks, redelivery and dead letters, over WebSocket and HTTP
#[derive(Debug, Parser)]
#[command(
    name = "prombus",
    version,
    propagate_version = true,
    after_help = "Examples:
  prombus serve
  prombus pub orders '{\"n\":1}'
  prombus sub orders --from earliest"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON: one document, or one per line for many events; errors as {"code":…,"error":…} on stderr
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    Schema(schema::Schema),
    Codegen(codegen::Codegen),
    Lint(lint::Lint),
    Apply(apply::Apply),
    Group(group::Group),
    Diff(diff::Diff),
    Dlq(dlq::Dlq),
    Schedule(schedule::Schedule),
    Top(top::Top),
    Health(health::Health),
    Nodes(nodes::Nodes),
    Context(context::ContextCommand),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Verify(verify::Verify),
    Token(token::Token),
    Project(project::Project),
    Outbox(outbox::Outbox),
    Changefeed(changefeed::Changefeed),
    Bench(bench::Bench),
    Completions(completions::Completions),
}

impl Cli {
    /// How results and errors are written.
    pub(crate) fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else {
            Format::Text
        }
    }

    /// Runs the command.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let format = self.format();
        let done = |()| ExitCode::SUCCESS;
        match self.command {
            Command::Serve(serve) => serve.run(format),
            Command::Dev(dev) => dev.run(format),
            Command::Publish(publish) => publish.run(format),
            Command::Subscribe(subscribe) => subscribe.run(format).map(done),
            Command::Replay(replay) => replay.run(format).map(done),
            Command::Export(export) => export.run().map(done),
            Command::Import(import) => import.run(format),
            Command::Topic(topic) => topic.run(format).map(done),
            Command::Schema(schema) => schema.run(format),
            Command::Codegen(codegen) => codegen.run(format).map(done),
            Command::Lint(lint) => lint.run(format),
            Command::Apply(apply) => apply.run(format).map(done),
            Command::Group(group) => group.run(format).map(done),
            Command::Diff(diff) => diff.run(format).map(done),
            Command::Dlq(dlq) => dlq.run(format),
            Command::Schedule(schedule) => schedule.run(format),
            Command::Top(top) => top.run(format).map(done),
            Command::Health(health) => health.run(format).map(done),
            Command::Nodes(nodes) => nodes.run(format).map(done),
            Command::Context(context) => context.run(format).map(done),
            Command::Backup(backup) => backup.run(format).map(done),
            Command::Restore(restore) => restore.run(format).map(done),
            Command::Verify(verify) => verify.run(format),
            Command::Token(token) => token.run(format).map(done),
            Command::Project(project) => project.run(format).map(done),
            Command::Outbox(outbox) => outbox.run(format),
            Command::Changefeed(changefeed) => changefeed.run(format).map(done),
            Command::Bench(bench) => bench.run(format).map(done),
            Command::Completions(completions) => completions.run().map(done),
        }
    }
}

#[cfg(test)]
mod tests;
