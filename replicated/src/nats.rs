//! NATS JetStream as the shared log: one stream with one subject, `<stream>.commit`, one message for each commit.
//!
//! Nothing is used that differs between nats-server 2.10 and later: plain appends, the stream's own republishing to
//! `<stream>.live`, and direct gets by sequence for whatever was not heard.

mod durability;
mod follow;
mod request;
mod snapshots;
mod stream;
mod url;

pub use url::{InvalidUrl, NatsUrl};

use crate::{AppendError, Bounds, Description, Follower, SharedLog, Snapshots, Unavailable};
use async_nats::client::RequestErrorKind;
use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use bytes::Bytes;
use prombus_store::{Answer, Durability};
use request::{Api, ApiFailure};
use snapshots::JetStreamSnapshots;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take at start.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How often the connection is tried, so that a server that hangs is left for another.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// Republished messages that wait to be applied. What does not fit is fetched later.
const MAX_LIVE: usize = 256;
/// A commit is sent in parts of this size, also where the server would take more: it warns above 8 MiB.
const MAX_MESSAGE_BYTES: usize = 900 << 10;
/// Commits of a node that are under way at a time: while the servers replicate one, the next is on its way. Beyond that
/// commits only become smaller.
const MAX_IN_FLIGHT: usize = 2;
/// What a server adds to a message when it republishes it.
const HEADROOM_BYTES: usize = 1 << 10;

/// A stream of JetStream as a shared log.
pub struct JetStreamLog {
    client: Client,
    api: Api,
    subject: String,
    live_subject: String,
    snapshots: Arc<JetStreamSnapshots>,
    description: Description,
}

/// Why the stream could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenStreamError {
    /// No server answers.
    #[error("no server of {url} answers: {cause}")]
    Connect {
        /// The servers.
        url: String,
        /// What failed.
        cause: String,
    },
    /// The servers do not let this node in.
    #[error("the servers of {url} reject the connection: {cause}")]
    Rejected {
        /// The servers.
        url: String,
        /// What they said.
        cause: String,
    },
    /// JetStream does not answer, or has no leader at the moment.
    #[error("JetStream does not answer about stream {stream}: {cause}")]
    Unanswered {
        /// The stream's name.
        stream: String,
        /// What failed.
        cause: String,
    },
    /// JetStream refused.
    #[error("JetStream does not open stream {stream}: {cause}")]
    Refused {
        /// The stream's name.
        stream: String,
        /// What it said.
        cause: String,
    },
    /// There is a stream of this name that is not what a cluster needs.
    #[error("stream {stream} cannot carry commits: {cause}")]
    Unfit {
        /// The stream's name.
        stream: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl OpenStreamError {
    /// Whether it may go well a moment later: servers start, or elect a leader.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Unanswered { .. })
    }
}

impl JetStreamLog {
    /// Connects, and makes the stream where there is none. A `new_log_id` is used only for a new stream; take it from
    /// the system's randomness.
    pub async fn open(url: &NatsUrl, new_log_id: u64) -> Result<Self, OpenStreamError> {
        let client = connect(url).await?;
        let opened = stream::open(&client, url, new_log_id).await?;
        let max_payload = client.server_info().max_payload;
        let max_message_bytes = max_payload
            .saturating_sub(HEADROOM_BYTES)
            .min(MAX_MESSAGE_BYTES);
        if max_message_bytes < 2 * HEADROOM_BYTES {
            let cause =
                format!("the servers take messages of {max_payload} bytes only (max_payload)");
            let stream = url.stream.clone();
            return Err(OpenStreamError::Unfit { stream, cause });
        }
        let (durability, warning) = durability::describe(url, opened.replicas).await;
        let snapshots = JetStreamSnapshots::new(client.clone(), &url.stream, opened.replicas);
        Ok(Self {
            api: Api::new(client.clone(), &url.stream),
            snapshots: Arc::new(snapshots),
            client,
            subject: stream::commit_subject(&url.stream),
            live_subject: stream::live_subject(&url.stream),
            description: Description {
                url: url.without_credentials(),
                durability,
                warning,
                log_id: opened.log_id,
                max_message_bytes,
                max_in_flight: MAX_IN_FLIGHT,
            },
        })
    }
}

async fn connect(url: &NatsUrl) -> Result<Client, OpenStreamError> {
    let failed = |cause: String| OpenStreamError::Connect {
        url: url.without_credentials(),
        cause,
    };
    let options = ConnectOptions::new()
        .name("prombus")
        .connection_timeout(CONNECT_LIMIT)
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(MAX_LIVE)
        .reconnect_delay_callback(|attempts| {
            Duration::from_millis((50 * attempts as u64).min(500))
        });
    let servers = url.servers().map_err(|error| failed(error.to_string()))?;
    let connected = options.connect(servers).await;
    connected.map_err(|error| match error.kind() {
        ConnectErrorKind::Authentication
        | ConnectErrorKind::AuthorizationViolation
        | ConnectErrorKind::Tls => OpenStreamError::Rejected {
            url: url.without_credentials(),
            cause: error.to_string(),
        },
        _ => failed(error.to_string()),
    })
}

impl SharedLog for JetStreamLog {
    /// The stream stores every message as its replicas and their `sync_interval` say; it knows no other durability.
    fn append(&self, message: Bytes, _: Durability) -> Answer<u64, AppendError> {
        let (api, subject) = (self.api.clone(), self.subject.clone());
        Box::pin(async move { api.append(subject, message).await })
    }

    fn follow(&self, after: u64) -> Follower {
        let (client, api) = (self.client.clone(), self.api.clone());
        let live_subject = self.live_subject.clone();
        Follower::spawn(move |sender| follow::run(client, api, live_subject, after, sender))
    }

    fn bounds(&self) -> Answer<Bounds, Unavailable> {
        let api = self.api.clone();
        Box::pin(async move { api.bounds().await })
    }

    fn trim(&self, through: u64) -> Answer<(), Unavailable> {
        let api = self.api.clone();
        Box::pin(async move { api.purge(through).await })
    }

    fn bytes(&self) -> Answer<Option<u64>, Unavailable> {
        let api = self.api.clone();
        Box::pin(async move { Ok(Some(api.bytes().await?)) })
    }

    fn snapshots(&self) -> Option<Arc<dyn Snapshots>> {
        Some(self.snapshots.clone())
    }

    fn description(&self) -> &Description {
        &self.description
    }
}

impl From<ApiFailure> for Unavailable {
    fn from(failure: ApiFailure) -> Self {
        Self {
            cause: failure.to_string().into(),
        }
    }
}

impl From<ApiFailure> for AppendError {
    fn from(failure: ApiFailure) -> Self {
        let cause: Arc<str> = failure.to_string().into();
        match failure {
            // It says no because the stream is full, sealed or gone. What it says during an election passes.
            ApiFailure::Refused {
                is_temporary: false,
                ..
            } => Self::Rejected { cause },
            ApiFailure::Request(RequestErrorKind::MaxPayloadExceeded) => Self::Rejected { cause },
            _ => Self::Unknown { cause },
        }
    }
}
