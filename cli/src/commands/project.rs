//! `project`: keeps a keyed topic as a table of an SQLite file, or as a collection of a MongoDB database.

mod source;

use super::database::Database;
use crate::output::{self, Format};
use crate::remote::RemoteArgs;
use crate::signals::until_stopped;
use clap::Args;
use prombus_connect::{Applied, Column, Position, Projection, Runner, VersionGuard};
use serde_json::json;
use source::RemoteSource;
use std::error::Error;
use std::time::Duration;

/// How long stopping waits for a transaction that is under way.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The name of the column with the key where none is given.
const KEY_COLUMN: &str = "key";

/// Keep a keyed topic as a table or a collection: the latest event of each key, until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus project --topic process.state --db states.db --table states --once
  prombus project --topic users --db users.db --table users --column 'city=address.city:text' --index city
  prombus project --topic users --db mongodb://127.0.0.1:27017/shop --collection users --once")]
pub(super) struct Project {
    /// The topic
    #[arg(long, value_parser = crate::names::topic)]
    topic: String,
    /// An SQLite file, created where it does not exist, or mongodb://HOST:PORT/DATABASE
    #[arg(long, value_name = "FILE|URL")]
    db: Database,
    /// The table or collection; created where it does not exist
    #[arg(long, visible_alias = "collection", value_name = "NAME")]
    table: String,
    /// A column from a field of the payload, e.g. `city=address.city:text`; the types are any, text, integer, real,
    /// boolean and json, and $payload, $id, $ts and $seq are the event's own. Without any: payload, ts, seq, id
    #[arg(long = "column", value_name = "NAME=PATH[:TYPE]")]
    columns: Vec<Column>,
    /// The name of the column with the key [default: key]; in a collection it is always _id
    #[arg(long, value_name = "NAME")]
    key_column: Option<String>,
    /// A column, or several with commas between, to make an index of
    #[arg(long = "index", value_name = "COLUMN[,COLUMN]")]
    indexes: Vec<String>,
    /// Where the payload has its version: what is older does not overwrite what is newer
    #[arg(long, value_name = "PATH[:number|text]")]
    version_field: Option<VersionGuard>,
    /// Stop when everything up to the topic's tail is in the table
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Project {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let outcome = runtime.block_on(self.project(format));
        runtime.shutdown_timeout(STOP_TIMEOUT);
        outcome
    }

    async fn project(&self, format: Format) -> anyhow::Result<()> {
        let mut source = RemoteSource::new(self.remote.remote()?, &self.topic);
        // Before there is a table: a topic that does not exist, or a server that is not there.
        source.check().await?;
        let source = source.patient(!self.once);
        match &self.db {
            Database::Sqlite(file) => {
                let connection = prombus_sqlite::open(file)?;
                let options = self.table_options();
                let changelog = prombus_sqlite::Changelog::open(connection, &self.topic, &options)?;
                self.keep(changelog, source, format).await
            }
            Database::Mongo(url) => {
                if self.key_column.is_some() {
                    anyhow::bail!(
                        "--key-column is for tables; a collection has the key as its _id"
                    );
                }
                let database = prombus_mongo::open(url).await?;
                let options = self.collection_options();
                let changelog = prombus_mongo::Changelog::open(&database, &self.topic, &options);
                self.keep(changelog.await?, source, format).await
            }
        }
    }

    async fn keep<P>(
        &self,
        changelog: P,
        source: RemoteSource,
        format: Format,
    ) -> anyhow::Result<()>
    where
        P: Projection,
        P::Error: Error + Sync + 'static,
    {
        let mut runner = Runner::new(changelog, source);
        if self.once {
            if let Some(done) = until_stopped(runner.catch_up()).await? {
                done?;
            }
        } else {
            let (topic, db) = (&self.topic, &self.db);
            output::notice(format_args!(
                "following {topic} into {} of {db}; Ctrl-C stops",
                self.table
            ));
            if let Some(failed) = until_stopped(runner.follow()).await? {
                failed?;
            }
        }
        let (total, position) = (runner.total(), runner.position().await);
        // The bar goes before the report comes.
        drop(runner);
        self.report(&total, &position, format)
    }

    fn table_options(&self) -> prombus_sqlite::ChangelogOptions {
        let key_column = self.key_column.as_deref().unwrap_or(KEY_COLUMN);
        prombus_sqlite::ChangelogOptions {
            key_column: key_column.to_owned(),
            columns: self.columns.clone(),
            indexes: self.indexes(),
            version: self.version_field.clone(),
            ..prombus_sqlite::ChangelogOptions::new(&self.table)
        }
    }

    fn collection_options(&self) -> prombus_mongo::ChangelogOptions {
        prombus_mongo::ChangelogOptions {
            columns: self.columns.clone(),
            indexes: self.indexes(),
            version: self.version_field.clone(),
            ..prombus_mongo::ChangelogOptions::new(&self.table)
        }
    }

    fn indexes(&self) -> Vec<Vec<String>> {
        let split = |index: &String| index.split(',').map(str::to_owned).collect();
        self.indexes.iter().map(split).collect()
    }

    fn report(&self, done: &Applied, position: &Position, format: Format) -> anyhow::Result<()> {
        if format.is_json() {
            return output::json(&json!({
                "topic": self.topic,
                "table": self.table,
                "position": position.seq,
                "events": done.events,
                "upserts": done.upserts,
                "deletes": done.deletes,
                "outdated": done.outdated,
                "keyless": done.keyless,
            }));
        }
        output::line(format_args!(
            "{} is up to {}/{}: {} events, {} rows written, {} removed",
            self.table, self.topic, position.seq, done.events, done.upserts, done.deletes
        ))?;
        if done.outdated > 0 {
            output::line(format_args!("{} were older than their rows", done.outdated))?;
        }
        if done.keyless > 0 {
            output::line(format_args!(
                "{} have no key and are in no row",
                done.keyless
            ))?;
        }
        Ok(())
    }
}
