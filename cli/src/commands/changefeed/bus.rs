//! A server as the bus that a changefeed publishes to and keeps its progress in.

use crate::remote::{ApiError, Remote};
use prombus_api::Code;
use prombus_api::http::{LatestPage, LatestQuery, TopicConfig, TopicInfo};
use prombus_client::Client;
use prombus_connect::Event;
use prombus_connect::outbox::{OutboxRow, Publish, PublishFailure, SentAt};
use prombus_mongo::FeedBus;
use prombus_mongo::error::FeedError;
use std::sync::Arc;
use ureq::http::Method;

/// Publishes over the socket, and asks over HTTP.
pub(super) struct RemoteBus {
    client: Client,
    remote: Arc<Remote>,
}

impl RemoteBus {
    pub(super) fn new(client: Client, remote: Remote) -> Self {
        let remote = Arc::new(remote);
        Self { client, remote }
    }

    /// Ends the connection.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.client.close().await?;
        Ok(())
    }

    /// Asks the server, on a thread that may wait.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Remote) -> anyhow::Result<T> + Send + 'static,
    ) -> Result<T, FeedError> {
        let remote = self.remote.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&remote)).await;
        let failed = |why: String, is_transient| FeedError::Bus { why, is_transient };
        match asked {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let is_transient = ApiError::is_retryable(&error);
                Err(failed(format!("{error:#}"), is_transient))
            }
            Err(lost) => Err(failed(lost.to_string(), false)),
        }
    }
}

impl Publish for RemoteBus {
    async fn publish<P: Sync>(&self, rows: &[OutboxRow<P>]) -> Vec<Result<SentAt, PublishFailure>> {
        Publish::publish(&self.client, rows).await
    }
}

impl FeedBus for RemoteBus {
    async fn prepare(&self, topic: &str) -> Result<(), FeedError> {
        let path = format!("/topics/{topic}");
        self.ask(move |remote| {
            match remote.get::<TopicInfo>(&path) {
                Ok(_) => return Ok(()),
                Err(error) if ApiError::code_of(&error) == Some(Code::UnknownTopic) => {}
                Err(error) => return Err(error),
            }
            let config = TopicConfig {
                compaction: true,
                ..TopicConfig::default()
            };
            remote.send(Method::PUT, &path, &serde_json::to_vec(&config)?)?;
            Ok(())
        })
        .await
    }

    async fn latest(&self, topic: &str, key: &str) -> Result<Option<String>, FeedError> {
        let query = LatestQuery {
            topic: topic.to_owned(),
            keys: vec![key.to_owned()],
            ..LatestQuery::default()
        };
        let path = format!("/latest-by-key?{}", query.to_query());
        let page: LatestPage = self.ask(move |remote| remote.get(&path)).await?;
        let Some(event) = page.events.first() else {
            return Ok(None);
        };
        let event = Event::from_json(event.get()).map_err(|error| FeedError::Bus {
            why: error.to_string(),
            is_transient: false,
        })?;
        Ok(Some(event.payload().to_owned()))
    }
}
