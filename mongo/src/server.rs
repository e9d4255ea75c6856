//! Opening a database by URL, and what its server can do.

use crate::error::MongoError;
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, ClientOptions, WriteConcern};
use mongodb::{Client, Database};
use std::time::Duration;

/// How long a request waits for a server that can answer it, unless the URL says something else.
pub const SELECTION_TIMEOUT_MS: u64 = 10_000;

/// Opens the database that the URL names, and sees that its server answers. Where the URL does not say otherwise, a
/// write is acknowledged when the majority has it in its journal.
pub async fn open(url: &str) -> Result<Database, MongoError> {
    let bad = |error: mongodb::error::Error| MongoError::BadUrl {
        why: error.kind.to_string(),
    };
    let mut options = ClientOptions::parse(url).await.map_err(bad)?;
    options
        .server_selection_timeout
        .get_or_insert(Duration::from_millis(SELECTION_TIMEOUT_MS));
    options.app_name.get_or_insert_with(|| "prombus".to_owned());
    options.write_concern.get_or_insert_with(durable);
    let name = options.default_database.clone();
    let name = name.ok_or(MongoError::NoDatabase)?;
    let database = Client::with_options(options).map_err(bad)?.database(&name);
    database.run_command(doc! { "ping": 1 }).await?;
    Ok(database)
}

/// Acknowledged when the majority has it in its journal.
pub(crate) fn durable() -> WriteConcern {
    WriteConcern::builder()
        .w(Acknowledgment::Majority)
        .journal(true)
        .build()
}

/// Whether the server has transactions and change streams: a replica set or a sharded cluster has.
pub async fn has_transactions(database: &Database) -> Result<bool, MongoError> {
    let hello: Document = database.run_command(doc! { "hello": 1 }).await?;
    let is_router = hello.get_str("msg").ok() == Some("isdbgrid");
    Ok(is_router || hello.contains_key("setName"))
}

/// Fails where the server has neither transactions nor change streams.
pub(crate) async fn require_replication(
    database: &Database,
    what: &'static str,
) -> Result<(), MongoError> {
    if has_transactions(database).await? {
        Ok(())
    } else {
        Err(MongoError::NotReplicated { what })
    }
}
