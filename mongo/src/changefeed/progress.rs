//! How far a changefeed is, as an event of the topic `changefeed.<topic>`, keyed by the collection.

use super::{ChangefeedOptions, FeedBus};
use crate::error::FeedError;
use mongodb::bson::oid::ObjectId;
use mongodb::change_stream::event::ResumeToken;
use prombus_connect::outbox::OutboxRow;
use serde::{Deserialize, Serialize};

/// How far a changefeed is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Progress {
    #[serde(flatten)]
    pub(super) phase: Phase,
    /// Changes behind this one are yet to be published.
    pub(super) token: ResumeToken,
}

/// What it is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(super) enum Phase {
    /// It publishes what was there when it began.
    Snapshot {
        /// Tells the ids of this snapshot from those of another one.
        snapshot: String,
        /// The `_id` of the last document that is published, as canonical Extended JSON.
        #[serde(skip_serializing_if = "Option::is_none")]
        after: Option<serde_json::Value>,
    },
    /// It publishes changes.
    Changes,
}

impl Progress {
    /// Before anything is published.
    pub(super) fn begin(token: ResumeToken, with_snapshot: bool) -> Self {
        let phase = if with_snapshot {
            Phase::Snapshot {
                snapshot: ObjectId::new().to_hex(),
                after: None,
            }
        } else {
            Phase::Changes
        };
        Self { phase, token }
    }

    /// Everything up to this token is published.
    pub(super) fn streaming(token: ResumeToken) -> Self {
        let phase = Phase::Changes;
        Self { phase, token }
    }
}

/// The progress that the bus holds of this collection.
pub(super) async fn load(
    bus: &impl FeedBus,
    options: &ChangefeedOptions,
    source: &str,
) -> Result<Option<Progress>, FeedError> {
    let topic = options.progress_topic();
    let Some(payload) = bus.latest(&topic, source).await? else {
        return Ok(None);
    };
    let progress = serde_json::from_str(&payload).map_err(|error| FeedError::BadProgress {
        topic,
        why: error.to_string(),
    })?;
    Ok(Some(progress))
}

/// Publishes the progress.
pub(super) async fn save(
    bus: &impl FeedBus,
    options: &ChangefeedOptions,
    source: &str,
    progress: &Progress,
) -> Result<(), FeedError> {
    let topic = options.progress_topic();
    let payload = serde_json::to_string(progress).map_err(|error| FeedError::BadProgress {
        topic: topic.clone(),
        why: error.to_string(),
    })?;
    let row = OutboxRow {
        place: (),
        // Each attempt is its own: the latest one counts.
        id: ObjectId::new().to_hex(),
        topic,
        payload,
        key: Some(source.to_owned()),
        ts: None,
        headers: Vec::new(),
        tags: Vec::new(),
        caused_by: Vec::new(),
        sid: None,
        attempts: 1,
    };
    match bus.publish(&[row]).await.pop() {
        Some(Ok(_)) => Ok(()),
        Some(Err(failure)) => Err(FeedError::Bus {
            is_transient: !failure.is_permanent(),
            why: format!("{}: {}", failure.code, failure.why),
        }),
        None => Err(FeedError::Bus {
            is_transient: true,
            why: "no answer came".to_owned(),
        }),
    }
}
