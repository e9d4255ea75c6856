//! The task that sends spans to a collector by OTLP over HTTP, in batches. What a collector that is away does not take
//! after a few attempts is dropped and counted; meanwhile the queue fills, and then spans are dropped where they are made.

use super::encode::encode;
use super::{MAX_QUEUED_SPANS, Span, SpanCounts, Spans};
use crate::http::Body;
use hyper::client::conn::http1;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The most spans of one request.
const MAX_BATCH_SPANS: usize = 512;
/// How long a span waits for others to share a request with.
const LINGER: Duration = Duration::from_secs(1);
/// How long a request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a batch is sent before it is dropped.
const MAX_TRIES: u32 = 5;
/// The pause after the first failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How long the end of the server waits for the last batch.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// What a collector's address is followed by.
const TRACES_PATH: &str = "/v1/traces";

/// An address that cannot be a collector's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid OTLP endpoint {url:?}: {reason}; expected something like http://127.0.0.1:4318")]
pub struct BadEndpoint {
    url: String,
    reason: &'static str,
}

/// The task that sends spans.
#[derive(Debug)]
pub struct Exporter {
    task: JoinHandle<()>,
    stopping: watch::Sender<bool>,
}

/// Where spans go.
struct Collector {
    /// Host and port, to connect to.
    address: (String, u16),
    authority: String,
    path: String,
}

/// Why a batch was not taken.
enum Refusal {
    /// It may be taken later.
    Transient,
    /// It never will.
    Permanent,
}

impl Exporter {
    /// Starts sending to the collector at this address, inside a tokio runtime.
    pub fn start(endpoint: &str) -> Result<(Spans, Self), BadEndpoint> {
        let collector = Collector::parse(endpoint)?;
        let (queue, spans) = mpsc::channel(MAX_QUEUED_SPANS);
        let counts = Arc::new(SpanCounts::default());
        let (stopping, stopped) = watch::channel(false);
        let task = tokio::spawn(run(collector, spans, counts.clone(), stopped));
        Ok((Spans::new(queue, counts), Self { task, stopping }))
    }

    /// Checks an address without using it.
    pub fn check(endpoint: &str) -> Result<(), BadEndpoint> {
        Collector::parse(endpoint).map(drop)
    }

    /// Sends what waits, and stops; at most two seconds.
    pub async fn stop(mut self) {
        self.stopping.send_replace(true);
        if tokio::time::timeout(STOP_TIMEOUT, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
    }
}

async fn run(
    collector: Collector,
    mut queue: mpsc::Receiver<Span>,
    counts: Arc<SpanCounts>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut batch = Vec::with_capacity(MAX_BATCH_SPANS);
    loop {
        batch.clear();
        let is_stopping = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => true,
            () = fill(&mut queue, &mut batch) => false,
        };
        if is_stopping {
            queue.close();
            while batch.len() < MAX_BATCH_SPANS {
                let Ok(span) = queue.try_recv() else { break };
                batch.push(span);
            }
        }
        if batch.is_empty() {
            // No sender is left, or the last span was sent.
            return;
        }
        let tries = if is_stopping { 1 } else { MAX_TRIES };
        let counter = if collector.send_with_retries(&batch, tries).await {
            &counts.exported
        } else {
            &counts.dropped
        };
        counter.add(batch.len() as u64);
    }
}

/// Waits for a span, and takes those that come soon after it. Letting go of the future loses nothing.
async fn fill(queue: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) {
    if queue.recv_many(batch, MAX_BATCH_SPANS).await == 0 {
        return;
    }
    let more = async {
        while batch.len() < MAX_BATCH_SPANS {
            let room = MAX_BATCH_SPANS - batch.len();
            if queue.recv_many(batch, room).await == 0 {
                return;
            }
        }
    };
    // Whether the time was over or the batch full, it is sent.
    let _ = tokio::time::timeout(LINGER, more).await;
}

impl Collector {
    fn parse(url: &str) -> Result<Self, BadEndpoint> {
        let bad = |reason| BadEndpoint {
            url: url.to_owned(),
            reason,
        };
        let uri: Uri = url.parse().map_err(|_| bad("it is no URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(bad(
                "only http:// is spoken; run a collector beside the server",
            ));
        }
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        let path = uri.path_and_query().map_or("", PathAndQuery::path);
        let path = path.trim_end_matches('/');
        Ok(Self {
            address: (
                authority.host().trim_matches(['[', ']']).to_owned(),
                authority.port_u16().unwrap_or(80),
            ),
            authority: authority.to_string(),
            path: if path.ends_with(TRACES_PATH) {
                path.to_owned()
            } else {
                format!("{path}{TRACES_PATH}")
            },
        })
    }

    /// Whether the collector took the batch, now or after some pauses.
    async fn send_with_retries(&self, batch: &[Span], tries: u32) -> bool {
        let body = encode(batch);
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=tries {
            let sending = tokio::time::timeout(REQUEST_TIMEOUT, self.send(body.clone()));
            match sending.await {
                Ok(Ok(())) => return true,
                Ok(Err(Refusal::Permanent)) => return false,
                Ok(Err(Refusal::Transient)) | Err(_) if attempt < tries => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                _ => {}
            }
        }
        false
    }

    async fn send(&self, body: Vec<u8>) -> Result<(), Refusal> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .body(Body::from(body))
            .map_err(|_| Refusal::Permanent)?;
        let (host, port) = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|_| Refusal::Transient)?;
        let connection = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connection.map_err(|_| Refusal::Transient)?;
        let exchange = sender.send_request(request);
        tokio::pin!(exchange, connection);
        let response = tokio::select! {
            biased;
            response = &mut exchange => response,
            // It may end before what it has read is taken.
            _ = &mut connection => exchange.await,
        };
        match response.map_err(|_| Refusal::Transient)?.status() {
            status if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(Refusal::Transient),
            _ => Err(Refusal::Permanent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_as_people_write_them() {
        for (url, host, port, path) in [
            ("http://127.0.0.1:4318", "127.0.0.1", 4318, "/v1/traces"),
            ("http://collector:4318/", "collector", 4318, "/v1/traces"),
            ("http://[::1]:4318/v1/traces", "::1", 4318, "/v1/traces"),
            ("http://collector/otlp", "collector", 80, "/otlp/v1/traces"),
        ] {
            let collector = Collector::parse(url).expect(url);
            assert_eq!(collector.address, (host.to_owned(), port), "{url}");
            assert_eq!(collector.path, path, "{url}");
        }
        for url in ["", "collector:4318", "https://collector:4318", "/v1/traces"] {
            assert!(Collector::parse(url).is_err(), "{url}");
        }
    }
}
