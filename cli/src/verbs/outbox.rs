//! `outbox`: makes an outbox in an SQLite file, and publishes what services put into it.

use crate::remote::RemoteArgs;
use crate::signals::until_stopped;
use clap::{Args, Subcommand};
use prombus::SystemClock;
use prombus_api::http::Age;
use prombus_sqlite::outbox::{Drained, OutboxCounts};
use prombus_sqlite::{Drainer, DrainerOptions};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long a stopped verb waits for a transaction that is under way.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Publish events that services wrote to an SQLite file together with what they are about
#[derive(Debug, Args)]
pub(super) struct Outbox {
    #[command(subcommand)]
    verb: Verb,
    /// Print what was done as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make the table prombus_outbox, where it is not there yet
    Init {
        /// The file; it is made where there is none
        #[arg(long, value_name = "FILE")]
        db: PathBuf,
    },
    /// Publish what is in the table, and what comes later, until Ctrl-C
    Drain(DrainArgs),
}

#[derive(Debug, Args)]
struct DrainArgs {
    /// The file
    #[arg(long, value_name = "FILE")]
    db: PathBuf,
    /// Stop when nothing is due; rows that are not sent then make the verb fail
    #[arg(long)]
    once: bool,
    /// The name of this drainer, which no other drainer of the file may have; one is made where none is given
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// How long rows are this drainer's before others may take them
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_age)]
    lease: Age,
    /// How long rows are kept after they were sent
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_age)]
    keep: Age,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Outbox {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.verb {
            Verb::Init { db } => self.init(db),
            Verb::Drain(args) => {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let outcome = runtime.block_on(self.drain(args));
                runtime.shutdown_timeout(STOP_TIMEOUT);
                outcome
            }
        }
    }

    fn init(&self, db: &Path) -> anyhow::Result<ExitCode> {
        let connection = prombus_sqlite::open(db)?;
        prombus_sqlite::Outbox::init(&connection)?;
        let counts = prombus_sqlite::Outbox::counts(&connection)?;
        match self.json {
            true => println!("{}", json!({ "db": db, "rows": counts })),
            false => println!("{} has an outbox: {}", db.display(), describe(&counts)),
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn drain(&self, args: &DrainArgs) -> anyhow::Result<ExitCode> {
        let connection = prombus_sqlite::open_existing(&args.db)?;
        let worker = args.worker.clone();
        let worker = worker.unwrap_or_else(|| format!("prombus-{}", std::process::id()));
        let options = DrainerOptions {
            lease_ms: args.lease.ms,
            keep_sent_ms: args.keep.ms,
            ..DrainerOptions::new(worker)
        };
        let mut drainer = Drainer::new(connection, options, Arc::new(SystemClock))?;
        let client = args.remote.client().await?;
        if args.once {
            if let Some(drained) = until_stopped(drainer.drain(&client)).await? {
                drained?;
            }
        } else {
            let (db, url) = (args.db.display(), &args.remote.url);
            eprintln!("draining {db} into {url}; Ctrl-C stops");
            if let Some(failed) = until_stopped(drainer.run(&client)).await? {
                failed?;
            }
        }
        client.close().await?;
        let (total, counts) = (drainer.total(), drainer.counts().await?);
        self.report(&total, &counts);
        let is_done = counts.pending + counts.claimed == 0 && total.failed == 0;
        Ok(match is_done || !args.once {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }

    fn report(&self, total: &Drained, counts: &OutboxCounts) {
        if self.json {
            let report = json!({
                "sent": total.sent,
                "duplicates": total.duplicates,
                "retried": total.retried,
                "failed": total.failed,
                "pruned": total.pruned,
                "rows": counts,
            });
            println!("{report}");
            return;
        }
        println!("{} sent; in the outbox: {}", total.sent, describe(counts));
        if total.failed > 0 {
            println!(
                "{} can never be sent; their column error says why",
                total.failed
            );
        }
    }
}

fn describe(counts: &OutboxCounts) -> String {
    format!(
        "{} pending, {} claimed, {} sent, {} failed",
        counts.pending, counts.claimed, counts.sent, counts.failed
    )
}

fn parse_age(text: &str) -> Result<Age, String> {
    Age::parse(text).ok_or_else(|| "a time is like 30s, 12h or 3d".to_owned())
}
