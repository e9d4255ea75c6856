//! Where a drainer publishes to.

use super::OutboxRow;
use prombus::error::PublishError;
use prombus::{Bus, PublishOptions};
use std::future::Future;

/// The codes of what can never be published as it is; everything else may succeed later.
const PERMANENT: [&str; 6] = [
    "bad_topic",
    "bad_json",
    "bad_frame",
    "too_large",
    "id_conflict",
    "schema_invalid",
];

/// Something that publishes events under the ids they bring.
pub trait Publish: Send + Sync {
    /// Publishes rows in their order, each with its own id, key and the rest; one result for each row. An event whose
    /// id the topic holds already counts as published.
    fn publish<P: Sync>(
        &self,
        rows: &[OutboxRow<P>],
    ) -> impl Future<Output = Vec<Result<SentAt, PublishFailure>>> + Send;
}

/// The position of a row's event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentAt {
    /// Its position in the topic.
    pub seq: u64,
    /// Whether the topic held it already, because an earlier attempt got that far.
    pub duplicate: bool,
}

/// Why a row was not published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishFailure {
    /// The bus's word for it.
    pub code: String,
    /// What is wrong, for people.
    pub why: String,
    /// When to come again, where the bus said so.
    pub retry_after_ms: Option<u64>,
}

impl PublishFailure {
    /// A failure without more.
    pub fn new(code: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            why: why.into(),
            retry_after_ms: None,
        }
    }

    /// Whether the row can never be published as it is.
    pub fn is_permanent(&self) -> bool {
        PERMANENT.contains(&self.code.as_str())
    }
}

impl<P> OutboxRow<P> {
    /// The options of its event, of the bus or of the client.
    fn options<X: Default>(&self) -> PublishOptions<'_, X> {
        PublishOptions {
            id: Some(&self.id),
            ts: self.ts,
            key: self.key.as_deref(),
            headers: &self.headers,
            tags: &self.tags,
            caused_by: &self.caused_by,
            sid: self.sid.as_deref(),
            ..PublishOptions::default()
        }
    }
}

impl Publish for Bus {
    async fn publish<P: Sync>(&self, rows: &[OutboxRow<P>]) -> Vec<Result<SentAt, PublishFailure>> {
        let mut batch = self.batch();
        for row in rows {
            batch.add(&row.topic, &row.payload, &row.options());
        }
        let results = self.publish_batch(batch).await.into_iter();
        let results = results.map(|result| match result {
            Ok(published) => Ok(SentAt {
                seq: published.seq,
                duplicate: published.duplicate,
            }),
            Err(error) => Err(PublishFailure::new(code(&error), error.to_string())),
        });
        results.collect()
    }
}

/// The code that a row's `error` begins with; a server answers with the same.
fn code(error: &PublishError) -> &'static str {
    match error {
        PublishError::InvalidTopic(_) => "bad_topic",
        PublishError::InvalidJson(_) | PublishError::InvalidPayload(_) => "bad_json",
        PublishError::TooLarge(_) => "too_large",
        PublishError::InvalidField(_) => "bad_frame",
        PublishError::SchemaInvalid(_) => "schema_invalid",
        PublishError::UnknownTopic(_) => "unknown_topic",
        PublishError::IdConflict(_) => "id_conflict",
        PublishError::SeqMismatch(_) => "seq_mismatch",
        PublishError::LimitReached(_) | PublishError::StoreFailed(_) => "publish_failed",
        PublishError::Closed => "shutting_down",
    }
}

#[cfg(feature = "client")]
impl Publish for prombus_client::Client {
    async fn publish<P: Sync>(&self, rows: &[OutboxRow<P>]) -> Vec<Result<SentAt, PublishFailure>> {
        use prombus_client::PublishError;
        let mut batch = self.batch();
        for row in rows {
            batch.add(&row.topic, &row.payload, &row.options());
        }
        let results = self.publish_batch(batch).await.into_iter();
        let results = results.map(|result| match result {
            Ok(published) => Ok(SentAt {
                seq: published.seq,
                duplicate: published.duplicate,
            }),
            Err(error) => {
                // What a server says names its code too, which the row begins with.
                let why = match &error {
                    PublishError::Refused(refused) => refused.message.clone(),
                    other => other.to_string(),
                };
                Err(PublishFailure {
                    retry_after_ms: error.retry_after_ms(),
                    ..PublishFailure::new(error.code(), why)
                })
            }
        });
        results.collect()
    }
}
