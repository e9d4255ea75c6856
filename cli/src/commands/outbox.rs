//! `outbox`: makes an outbox in an SQLite file, and publishes what services put into it.

use crate::output::{self, Format};
use crate::remote::RemoteArgs;
use crate::signals::until_stopped;
use clap::{Args, Subcommand};
use prombus::SystemClock;
use prombus_api::http::Age;
use prombus_sqlite::DrainerOptions;
use prombus_sqlite::outbox::{Drained, OutboxCounts};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long stopping waits for a transaction that is under way.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Publish events that services wrote to an SQLite file together with what they are about
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus outbox init --db shop.db
  prombus outbox drain --db shop.db --once")]
pub(super) struct Outbox {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Create the table prombus_outbox where it does not exist
    #[command(after_help = "Examples:
  prombus outbox init --db shop.db")]
    Init {
        /// The file; created where it does not exist
        #[arg(long, value_name = "FILE")]
        db: PathBuf,
    },
    /// Publish what is in the table, and what comes later, until Ctrl-C
    #[command(after_help = "Examples:
  prombus outbox drain --db shop.db
  prombus outbox drain --db shop.db --once --json")]
    Drain(DrainArgs),
}

#[derive(Debug, Args)]
struct DrainArgs {
    /// The file
    #[arg(long, value_name = "FILE")]
    db: PathBuf,
    /// Stop when nothing is due; rows that are not sent then make the command fail
    #[arg(long)]
    once: bool,
    /// The name of this drainer, which no other drainer of the file may have; one is made where none is given
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// How long rows are this drainer's before others may take them
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::time::parse_age)]
    lease: Age,
    /// How long rows are kept after they were sent
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = crate::time::parse_age)]
    keep: Age,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Outbox {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<ExitCode> {
        match &self.command {
            Subcommands::Init { db } => init(db, format),
            Subcommands::Drain(args) => {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let outcome = runtime.block_on(drain(args, format));
                runtime.shutdown_timeout(STOP_TIMEOUT);
                outcome
            }
        }
    }
}

fn init(db: &Path, format: Format) -> anyhow::Result<ExitCode> {
    let connection = prombus_sqlite::open(db)?;
    prombus_sqlite::Outbox::init(&connection)?;
    let counts = prombus_sqlite::Outbox::counts(&connection)?;
    if format.is_json() {
        output::json(&json!({ "db": db, "rows": counts }))?;
    } else {
        output::line(format_args!(
            "{} has an outbox: {}",
            db.display(),
            describe(&counts)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn drain(args: &DrainArgs, format: Format) -> anyhow::Result<ExitCode> {
    let connection = prombus_sqlite::open_existing(&args.db)?;
    let worker = args.worker.clone();
    let worker = worker.unwrap_or_else(|| format!("prombus-{}", std::process::id()));
    let options = DrainerOptions {
        lease_ms: args.lease.ms,
        keep_sent_ms: args.keep.ms,
        ..DrainerOptions::new(worker)
    };
    let clock = Arc::new(SystemClock);
    let mut drainer = prombus_sqlite::Outbox::drainer(connection, options, clock)?;
    let client = args.remote.client().await?;
    if args.once {
        if let Some(drained) = until_stopped(drainer.drain(&client)).await? {
            drained?;
        }
    } else {
        let (db, url) = (args.db.display(), args.remote.server()?.url);
        output::notice(format_args!("draining {db} into {url}; Ctrl-C stops"));
        if let Some(failed) = until_stopped(drainer.run(&client)).await? {
            failed?;
        }
    }
    client.close().await?;
    let (total, counts) = (drainer.total(), drainer.counts().await?);
    report(&total, &counts, format)?;
    let is_done = counts.pending + counts.claimed == 0 && total.failed == 0;
    if is_done || !args.once {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}

fn report(total: &Drained, counts: &OutboxCounts, format: Format) -> anyhow::Result<()> {
    if format.is_json() {
        return output::json(&json!({
            "sent": total.sent,
            "duplicates": total.duplicates,
            "retried": total.retried,
            "failed": total.failed,
            "pruned": total.pruned,
            "rows": counts,
        }));
    }
    output::line(format_args!(
        "{} sent; in the outbox: {}",
        total.sent,
        describe(counts)
    ))?;
    if total.failed > 0 {
        output::line(format_args!(
            "{} can never be sent; the column error says why",
            total.failed
        ))?;
    }
    Ok(())
}

fn describe(counts: &OutboxCounts) -> String {
    format!(
        "{} pending, {} claimed, {} sent, {} failed",
        counts.pending, counts.claimed, counts.sent, counts.failed
    )
}
