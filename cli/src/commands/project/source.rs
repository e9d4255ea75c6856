//! A topic of a server, read page by page over HTTP.

use crate::output;
use crate::progress::count_events;
use crate::remote::{ApiError, Remote};
use indicatif::ProgressBar;
use prombus::{ReadLimit, StartAt};
use prombus_api::Code;
use prombus_api::http::{EventPage, ReadQuery, TopicInfo};
use prombus_connect::error::SourceError;
use prombus_connect::{Event, Source, SourcePage};
use std::sync::Arc;
use std::time::Duration;

/// How often the server is asked while there is nothing new.
const POLL: Duration = Duration::from_millis(250);
/// How long to wait for a server that is gone, at first and at the longest.
const RETRY_MS: (u64, u64) = (250, 10_000);

/// A topic of a server.
pub(super) struct RemoteSource {
    remote: Arc<Remote>,
    topic: String,
    /// Whether it waits for a server that is gone to come back.
    is_patient: bool,
    /// Counts while it catches up.
    bar: ProgressBar,
}

impl RemoteSource {
    pub(super) fn new(remote: Remote, topic: &str) -> Self {
        Self {
            remote: Arc::new(remote),
            topic: topic.to_owned(),
            is_patient: false,
            bar: count_events(),
        }
    }

    /// Whether to wait for a server that is gone to come back.
    pub(super) fn patient(mut self, is_patient: bool) -> Self {
        self.is_patient = is_patient;
        self
    }

    /// Reads a little, for the server's own words where that is refused.
    pub(super) async fn check(&mut self) -> anyhow::Result<()> {
        let (remote, topic) = (self.remote.clone(), self.topic.clone());
        tokio::task::spawn_blocking(move || read(&remote, &topic, 1, 1)).await??;
        Ok(())
    }

    async fn read_once(&self, from_seq: u64, limit: usize) -> anyhow::Result<SourcePage> {
        let (remote, topic) = (self.remote.clone(), self.topic.clone());
        let reading = move || read(&remote, &topic, from_seq, limit);
        tokio::task::spawn_blocking(reading).await?
    }
}

impl Source for RemoteSource {
    fn topic(&self) -> &str {
        &self.topic
    }

    async fn read(&mut self, from_seq: u64, limit: ReadLimit) -> Result<SourcePage, SourceError> {
        let mut wait_ms = RETRY_MS.0;
        loop {
            let error = match self.read_once(from_seq, limit.events).await {
                Ok(page) => {
                    // The last event of the page before is repeated in each one.
                    self.bar.inc((page.events.len() as u64).saturating_sub(1));
                    return Ok(page);
                }
                Err(error) => error,
            };
            if ApiError::code_of(&error) == Some(Code::UnknownTopic) {
                let topic = self.topic.clone();
                return Err(SourceError::UnknownTopic { topic });
            }
            if !self.is_patient || !ApiError::is_retryable(&error) {
                let why = format!("{error:#}");
                return Err(SourceError::Failed { why });
            }
            if wait_ms == RETRY_MS.0 {
                output::notice(format_args!("{error:#}; retrying until it is back"));
            }
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            wait_ms = (wait_ms * 2).min(RETRY_MS.1);
        }
    }

    async fn moved(&mut self, _: u64) -> Result<(), SourceError> {
        self.bar.finish_and_clear();
        tokio::time::sleep(POLL).await;
        Ok(())
    }
}

impl Drop for RemoteSource {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Reads a page, beyond stretches of which nothing is kept.
fn read(remote: &Remote, topic: &str, from_seq: u64, limit: usize) -> anyhow::Result<SourcePage> {
    let mut query = ReadQuery {
        topic: topic.to_owned(),
        start: Some(StartAt::Seq(from_seq)),
        limit: Some(limit as u64),
        upcast: false,
    };
    loop {
        let page: EventPage = remote.get(&format!("/replay?{}", query.to_query()))?;
        let events = page
            .events
            .iter()
            .map(|event| Event::from_json(event.get()));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        match (events.last(), page.next) {
            (Some(last), next) => {
                let tail_seq = next.unwrap_or(last.seq());
                return Ok(SourcePage { events, tail_seq });
            }
            (None, Some(next)) => query.start = Some(StartAt::Seq(next)),
            (None, None) => {
                let info: TopicInfo = remote.get(&format!("/topics/{topic}"))?;
                let tail_seq = info.tail_seq;
                return Ok(SourcePage { events, tail_seq });
            }
        }
    }
}
