//! `changefeed`: publishes the changes of a MongoDB collection as events of a topic.

mod bus;

use super::database::Database;
use crate::output::{self, Format};
use crate::remote::RemoteArgs;
use crate::signals::until_stopped;
use bus::RemoteBus;
use clap::Args;
use prombus_mongo::ChangefeedOptions;
use prombus_mongo::changefeed::Fed;
use serde_json::json;
use std::time::Duration;

/// How long stopping waits for a request that is under way.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Publish the documents of a MongoDB collection, and then every change of it, until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus changefeed --db mongodb://127.0.0.1:27017/shop --collection orders --topic orders.changes
  prombus changefeed --db mongodb://127.0.0.1:27017/shop --collection orders --topic orders.changes --once --json")]
pub(super) struct Changefeed {
    /// The database: mongodb://HOST:PORT/DATABASE, of a replica set or a sharded cluster
    #[arg(long, value_name = "URL", value_parser = parse_mongodb)]
    db: Database,
    /// The collection
    #[arg(long, value_name = "NAME")]
    collection: String,
    /// The topic of the events
    #[arg(long, value_parser = crate::names::topic)]
    topic: String,
    /// Publish only what changes from now on, not the documents that are there
    #[arg(long)]
    no_snapshot: bool,
    /// Begin anew, though the server knows how far the feed was
    #[arg(long)]
    restart: bool,
    /// Stop when no change is left
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Changefeed {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let outcome = runtime.block_on(self.feed(format));
        runtime.shutdown_timeout(STOP_TIMEOUT);
        outcome
    }

    async fn feed(&self, format: Format) -> anyhow::Result<()> {
        let Database::Mongo(url) = &self.db else {
            anyhow::bail!("a changefeed reads from MongoDB");
        };
        let database = prombus_mongo::open(url).await?;
        let options = ChangefeedOptions {
            snapshot: !self.no_snapshot,
            restart: self.restart,
            ..ChangefeedOptions::new(&self.collection, &self.topic)
        };
        let mut feed = prombus_mongo::Changefeed::open(&database, options).await?;
        let bus = RemoteBus::new(self.remote.client().await?, self.remote.remote()?);
        if self.once {
            if let Some(done) = until_stopped(feed.catch_up(&bus)).await? {
                done?;
            }
        } else {
            let (db, collection, topic) = (&self.db, &self.collection, &self.topic);
            output::notice(format_args!(
                "publishing the changes of {collection} of {db} to {topic}; Ctrl-C stops"
            ));
            if let Some(failed) = until_stopped(feed.run(&bus)).await? {
                failed?;
            }
        }
        bus.close().await?;
        self.report(&feed.total(), format)
    }

    fn report(&self, total: &Fed, format: Format) -> anyhow::Result<()> {
        if format.is_json() {
            return output::json(&json!({
                "collection": self.collection,
                "topic": self.topic,
                "snapshot": total.snapshot,
                "changes": total.changes,
                "duplicates": total.duplicates,
            }));
        }
        output::line(format_args!(
            "{}: {} documents and {} changes published, {} of them were there already",
            self.topic, total.snapshot, total.changes, total.duplicates
        ))
    }
}

fn parse_mongodb(text: &str) -> Result<Database, String> {
    let Ok(database) = text.parse::<Database>();
    match database {
        Database::Mongo(_) => Ok(database),
        Database::Sqlite(_) => Err("expected mongodb://HOST:PORT/DATABASE".to_owned()),
    }
}
