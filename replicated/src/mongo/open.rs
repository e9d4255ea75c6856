//! Opening the log: the URL, what the server is, and the log's own number.

use super::{MAX_MESSAGE_BYTES, META, META_ID, MongoLog, concern};
use crate::Description;
use mongodb::bson::{Document, doc, oid::ObjectId};
use mongodb::error::{Error, ErrorKind, RETRYABLE_WRITE_ERROR};
use mongodb::options::ClientOptions;
use mongodb::{Client, Database};
use prombus_store::Durability;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// The database where the URL names none.
const DEFAULT_DATABASE: &str = "prombus";
/// How the log is kept; a higher number is of a newer version.
const FORMAT: i64 = 1;
/// How long a request waits for a server that can answer it, unless the URL says something else.
const SELECTION_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a log could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The URL is not one.
    #[error("invalid MongoDB URL: {why}")]
    BadUrl {
        /// What is wrong with it.
        why: String,
    },
    /// No server answers, or none is the primary at the moment.
    #[error("cannot open the log in MongoDB: {why}")]
    Unanswered {
        /// What the driver said.
        why: String,
    },
    /// The server refused.
    #[error("cannot open the log in MongoDB: {why}")]
    Failed {
        /// What the driver said.
        why: String,
    },
    /// A newer version keeps its log there.
    #[error("the log in MongoDB has format {format}, this version knows {FORMAT}")]
    NewerFormat {
        /// Its format.
        format: i64,
    },
}

impl OpenError {
    /// Whether it may go well a moment later: servers start, or elect a primary.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        let why = error.kind.to_string();
        let is_unanswered = matches!(
            &*error.kind,
            ErrorKind::ServerSelection { .. }
                | ErrorKind::Io(_)
                | ErrorKind::ConnectionPoolCleared { .. }
        );
        if is_unanswered || error.contains_label(RETRYABLE_WRITE_ERROR) {
            Self::Unanswered { why }
        } else {
            Self::Failed { why }
        }
    }
}

impl MongoLog {
    /// Opens the log in the database that the URL names, and makes it where there is none.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        let bad = |error: Error| OpenError::BadUrl {
            why: error.kind.to_string(),
        };
        let mut options = ClientOptions::parse(url).await.map_err(bad)?;
        options
            .server_selection_timeout
            .get_or_insert(SELECTION_TIMEOUT);
        options.app_name.get_or_insert_with(|| "prombus".to_owned());
        // A retry by the driver may go to another primary, where the message before this one is missing. The node sends
        // again by itself, at a place that it looks up.
        options.retry_writes = Some(false);
        let name = options.default_database.clone();
        let name = name.unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
        let hosts: Vec<String> = options.hosts.iter().map(ToString::to_string).collect();
        let shown = format!("mongodb://{}/{name}", hosts.join(","));
        let database = Client::with_options(options).map_err(bad)?.database(&name);
        let hello: Document = database.run_command(doc! { "hello": 1 }).await?;
        let log_id = log_id(&database).await?;
        let (durability, warning) = describe(&hello);
        let is_router = hello.get_str("msg").ok() == Some("isdbgrid");
        let has_change_streams = is_router || hello.contains_key("setName");
        let description = Description {
            url: shown,
            durability,
            warning,
            log_id,
            max_message_bytes: MAX_MESSAGE_BYTES,
            // Two would try to insert the same number.
            max_in_flight: 1,
        };
        Ok(Self::new(&database, description, has_change_streams))
    }
}

/// The log's number; drawn by whoever opens it first.
async fn log_id(database: &Database) -> Result<u64, OpenError> {
    let drawn = xxh3_64(&ObjectId::new().bytes()) as i64;
    let meta = database.collection::<Document>(META);
    let begin = doc! { "$setOnInsert": { "format": FORMAT, "log_id": drawn, "trimmed": 0_i64 } };
    let begun = meta.update_one(doc! { "_id": META_ID }, begin).upsert(true);
    let begun = begun.write_concern(concern(Durability::Fsync)).await;
    match begun {
        Ok(_) => {}
        // Another node opens it at the same moment.
        Err(error) if super::is_duplicate(&error) => {}
        Err(error) => return Err(error.into()),
    }
    let meta = meta.find_one(doc! { "_id": META_ID }).await?;
    let meta = meta.unwrap_or_default();
    match meta.get_i64("format") {
        Ok(format) if format > FORMAT => Err(OpenError::NewerFormat { format }),
        _ => Ok(meta.get_i64("log_id").unwrap_or(drawn) as u64),
    }
}

/// What an acknowledged commit has survived, and how it could still be lost.
fn describe(hello: &Document) -> (String, Option<String>) {
    let os = "commits to `os` topics alone are acknowledged by the primary (w:1) and may be lost by a failover";
    if hello.get_str("msg").ok() == Some("isdbgrid") {
        let durability =
            format!("in the journal of the majority of a shard (w:majority, j:true); {os}");
        return (durability, None);
    }
    let Ok(set) = hello.get_str("setName") else {
        let durability = "in the journal of one MongoDB server (j:true); not replicated".to_owned();
        let warning = "the shared log is on one MongoDB server without a replica set: it is lost with its disk";
        return (durability, Some(warning.to_owned()));
    };
    let members = hello.get_array("hosts").map_or(1, Vec::len);
    let durability = format!(
        "in the journal of the majority of replica set {set} with {members} data-bearing members (w:majority, j:true); {os}"
    );
    let warning = (members < 3).then(|| {
        format!("replica set {set} has {members} data-bearing members: the shared log survives the loss of none of them")
    });
    (durability, warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_says_what_the_server_is() {
        let (durability, warning) = describe(&doc! {});
        assert!(durability.contains("one MongoDB server"), "{durability}");
        assert!(warning.is_some());
        let (durability, warning) = describe(&doc! { "setName": "rs0", "hosts": ["a", "b", "c"] });
        assert!(durability.contains("rs0 with 3"), "{durability}");
        assert_eq!(warning, None);
        let (_, warning) = describe(&doc! { "setName": "rs0", "hosts": ["a"] });
        assert!(warning.is_some_and(|warning| warning.contains("1 data-bearing")));
    }
}
