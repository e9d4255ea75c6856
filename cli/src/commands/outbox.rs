//! `outbox`: makes an outbox in an SQLite file or a MongoDB database, and publishes what services put into it.

use super::database::Database;
use crate::output::{self, Format};
use crate::remote::RemoteArgs;
use crate::signals::until_stopped;
use clap::{Args, Subcommand};
use prombus::SystemClock;
use prombus_api::http::Age;
use prombus_connect::outbox::{ClaimStore, Drained, Drainer, DrainerOptions, OutboxCounts};
use serde_json::json;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long stopping waits for a transaction that is under way.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Publish events that services wrote to their own database together with what they are about
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus outbox init --db shop.db
  prombus outbox drain --db shop.db --once
  prombus outbox drain --db mongodb://127.0.0.1:27017/shop")]
pub(super) struct Outbox {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Create the table or collection prombus_outbox where it does not exist
    #[command(after_help = "Examples:
  prombus outbox init --db shop.db
  prombus outbox init --db mongodb://127.0.0.1:27017/shop")]
    Init {
        /// An SQLite file, created where it does not exist, or mongodb://HOST:PORT/DATABASE
        #[arg(long, value_name = "FILE|URL")]
        db: Database,
    },
    /// Publish what is in the table, and what comes later, until Ctrl-C
    #[command(after_help = "Examples:
  prombus outbox drain --db shop.db
  prombus outbox drain --db shop.db --once --json")]
    Drain(DrainArgs),
}

#[derive(Debug, Args)]
struct DrainArgs {
    /// An SQLite file, or mongodb://HOST:PORT/DATABASE
    #[arg(long, value_name = "FILE|URL")]
    db: Database,
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
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let outcome = runtime.block_on(async {
            match &self.command {
                Subcommands::Init { db } => init(db, format).await,
                Subcommands::Drain(args) => drain(args, format).await,
            }
        });
        runtime.shutdown_timeout(STOP_TIMEOUT);
        outcome
    }
}

async fn init(db: &Database, format: Format) -> anyhow::Result<ExitCode> {
    let counts = match db {
        Database::Sqlite(file) => {
            let connection = prombus_sqlite::open(file)?;
            prombus_sqlite::Outbox::init(&connection)?;
            prombus_sqlite::Outbox::counts(&connection)?
        }
        Database::Mongo(url) => {
            let database = prombus_mongo::open(url).await?;
            prombus_mongo::Outbox::init(&database).await?;
            prombus_mongo::Outbox::counts(&database).await?
        }
    };
    if format.is_json() {
        output::json(&json!({ "db": db.to_string(), "rows": counts }))?;
    } else {
        output::line(format_args!("{db} has an outbox: {}", describe(&counts)))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn drain(args: &DrainArgs, format: Format) -> anyhow::Result<ExitCode> {
    let worker = args.worker.clone();
    let worker = worker.unwrap_or_else(|| format!("prombus-{}", std::process::id()));
    let options = DrainerOptions {
        lease_ms: args.lease.ms,
        keep_sent_ms: args.keep.ms,
        ..DrainerOptions::new(worker)
    };
    let clock = Arc::new(SystemClock);
    match &args.db {
        Database::Sqlite(file) => {
            let connection = prombus_sqlite::open_existing(file)?;
            let drainer = prombus_sqlite::Outbox::drainer(connection, options, clock)?;
            drain_with(drainer, args, format).await
        }
        Database::Mongo(url) => {
            let database = prombus_mongo::open(url).await?;
            let drainer = prombus_mongo::Outbox::drainer(&database, options, clock).await?;
            drain_with(drainer, args, format).await
        }
    }
}

async fn drain_with<C>(
    mut drainer: Drainer<C>,
    args: &DrainArgs,
    format: Format,
) -> anyhow::Result<ExitCode>
where
    C: ClaimStore,
    C::Error: Error + Sync + 'static,
{
    let client = args.remote.client().await?;
    if args.once {
        if let Some(drained) = until_stopped(drainer.drain(&client)).await? {
            drained?;
        }
    } else {
        let (db, url) = (&args.db, args.remote.server()?.url);
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
            "{} can never be sent; their field `error` says why",
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
