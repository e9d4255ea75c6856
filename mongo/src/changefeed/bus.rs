//! What a changefeed needs of a bus.

use crate::error::FeedError;
use prombus::error::AdminError;
use prombus::{Bus, TopicConfig};
use prombus_connect::outbox::Publish;

/// A bus that a changefeed publishes to, and that keeps its progress.
pub trait FeedBus: Publish {
    /// Makes the topic of the progress, of which only the latest event of each key has to be kept. One that is there is
    /// fine.
    fn prepare(&self, topic: &str) -> impl Future<Output = Result<(), FeedError>> + Send;

    /// The payload of the latest event of a key.
    fn latest(
        &self,
        topic: &str,
        key: &str,
    ) -> impl Future<Output = Result<Option<String>, FeedError>> + Send;
}

impl FeedBus for Bus {
    async fn prepare(&self, topic: &str) -> Result<(), FeedError> {
        let config = TopicConfig {
            compaction: true,
            ..TopicConfig::default()
        };
        match self.create_topic(topic, &config).await {
            Ok(()) | Err(AdminError::TopicExists(_)) => Ok(()),
            Err(error) => Err(failed(&error, matches!(error, AdminError::StoreFailed(_)))),
        }
    }

    async fn latest(&self, topic: &str, key: &str) -> Result<Option<String>, FeedError> {
        match Bus::latest(self, topic, key).await {
            Ok(event) => Ok(event.map(|event| event.payload().to_owned())),
            Err(error) => Err(failed(&error, false)),
        }
    }
}

fn failed(error: &dyn std::error::Error, is_transient: bool) -> FeedError {
    FeedError::Bus {
        why: error.to_string(),
        is_transient,
    }
}
