//! Batches as tests write them down, before they are encoded.

use prombus_log::Commit;
use prombus_store::{Batch, Change, CommitError, Draft, Id, IfExists, Receipt, TopicOptions};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// What a test wants committed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) atomic: bool,
    pub(crate) changes: Vec<Change>,
    pub(crate) events: Vec<PlannedEvent>,
}

/// An event as a publisher has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlannedEvent {
    pub(crate) topic: Arc<str>,
    pub(crate) id: Option<String>,
    pub(crate) ts: Option<u64>,
    pub(crate) key: Option<String>,
    pub(crate) payload: String,
    pub(crate) tombstone: bool,
}

impl Plan {
    /// The batch that the log takes.
    pub(crate) fn batch(&self) -> Batch {
        let mut batch = if self.atomic {
            Batch::atomic()
        } else {
            Batch::new()
        };
        for change in &self.changes {
            batch.change(change.clone());
        }
        for event in &self.events {
            let draft = Draft {
                id: event
                    .id
                    .as_deref()
                    .map(|id| Id::from_client(id).expect("an id")),
                ts: event.ts,
                key: event.key.as_deref(),
                payload: &event.payload,
                tombstone: event.tombstone,
                ..Draft::default()
            };
            batch.publish(&event.topic, &draft);
        }
        batch
    }

    /// A batch that makes a topic.
    pub(crate) fn topic(topic: &str, options: TopicOptions) -> Self {
        Self {
            changes: vec![Change::PutTopic {
                topic: topic.into(),
                options,
                if_exists: IfExists::Replace,
            }],
            ..Self::default()
        }
    }

    /// A batch of events.
    pub(crate) fn events(events: impl IntoIterator<Item = PlannedEvent>) -> Self {
        Self {
            events: events.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl PlannedEvent {
    /// An event of which only the payload is chosen.
    pub(crate) fn new(topic: &str, payload: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            payload: payload.into(),
            ..Self::default()
        }
    }

    /// The same with an id of its own.
    pub(crate) fn with_id(self, id: impl Into<String>) -> Self {
        Self {
            id: Some(id.into()),
            ..self
        }
    }

    /// The same with a key.
    pub(crate) fn with_key(self, key: impl Into<String>) -> Self {
        Self {
            key: Some(key.into()),
            ..self
        }
    }
}

/// What a commit has answered by now.
pub(crate) fn answer_of(commit: &mut Commit) -> Option<Result<Receipt, CommitError>> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(commit).poll(&mut context) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}
