//! A topic of a server, read page by page through the remote client.

use super::{Source, SourcePage};
use crate::error::SourceError;
use crate::event::Event;
use prombus::ReadLimit;
use prombus_client::{Client, FollowError, RequestError, StartAt};
use std::sync::Arc;
use std::time::Duration;

/// The most events that a server gives in one page.
const MAX_PAGE_EVENTS: usize = 1_000;
/// How long to wait for a server that is gone, at first and at the longest.
const RETRY_MS: (u64, u64) = (100, 10_000);

/// A topic of a server. Where the server is gone, it is waited for; let go of the future to stop that.
#[derive(Debug, Clone)]
pub struct ClientSource {
    client: Client,
    topic: Arc<str>,
}

impl ClientSource {
    /// Reads `topic`, which may be yet to be made.
    pub fn new(client: &Client, topic: &str) -> Self {
        Self {
            client: client.clone(),
            topic: topic.into(),
        }
    }

    async fn read_once(&self, from_seq: u64, limit: u64) -> Result<SourcePage, SourceFailure> {
        let mut from_seq = from_seq;
        loop {
            let from = StartAt::Seq(from_seq);
            let page = self.client.replay(&self.topic, from, limit).await?;
            let events = page
                .events
                .iter()
                .map(|event| Event::from_json(event.json()));
            let events = events.collect::<Result<Vec<_>, _>>().map_err(|error| {
                let why = error.to_string();
                SourceFailure::Source(SourceError::Failed { why })
            })?;
            match (events.last(), page.next_seq) {
                (Some(last), next) => {
                    let tail_seq = next.unwrap_or(last.seq());
                    return Ok(SourcePage { events, tail_seq });
                }
                // A stretch of which nothing is kept.
                (None, Some(next)) => from_seq = next,
                (None, None) => {
                    let tail_seq = self.client.topic(&self.topic).await?.tail_seq;
                    return Ok(SourcePage { events, tail_seq });
                }
            }
        }
    }

    fn failure(&self, error: &RequestError) -> SourceError {
        match error.code() {
            "unknown_topic" => SourceError::UnknownTopic {
                topic: self.topic.to_string(),
            },
            _ => SourceError::Failed {
                why: error.to_string(),
            },
        }
    }
}

/// Why a page could not be read.
enum SourceFailure {
    Request(RequestError),
    Source(SourceError),
}

impl From<RequestError> for SourceFailure {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

impl Source for ClientSource {
    fn topic(&self) -> &str {
        &self.topic
    }

    async fn read(&mut self, from_seq: u64, limit: ReadLimit) -> Result<SourcePage, SourceError> {
        let limit = limit.events.clamp(1, MAX_PAGE_EVENTS) as u64;
        let mut wait_ms = RETRY_MS.0;
        loop {
            let error = match self.read_once(from_seq, limit).await {
                Ok(page) => return Ok(page),
                Err(SourceFailure::Source(error)) => return Err(error),
                Err(SourceFailure::Request(error)) => error,
            };
            if self.client.ended().is_some() {
                return Err(SourceError::Closed);
            }
            if !matches!(error, RequestError::Unreachable { .. }) {
                return Err(self.failure(&error));
            }
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            wait_ms = (wait_ms * 2).min(RETRY_MS.1);
        }
    }

    async fn moved(&mut self, tail_seq: u64) -> Result<(), SourceError> {
        match self.client.wait_for_seq(&self.topic, tail_seq + 1).await {
            Ok(()) => Ok(()),
            Err(FollowError::Ended(_)) => Err(SourceError::Closed),
            Err(error) => Err(SourceError::Failed {
                why: error.to_string(),
            }),
        }
    }
}
