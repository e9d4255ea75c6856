//! What can go wrong: one enum per operation, each with its `code()`, and messages that say what to do.

use crate::subscription::Ended;
pub use prombus_interface::InvalidField;
use std::sync::Arc;
use thiserror::Error;

/// A URL that is not one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the URL {url:?} cannot be used: {why}; give something like ws://127.0.0.1:8090/ws")]
pub struct BadUrl {
    /// The URL, without what may be secret in it.
    pub url: String,
    /// What is wrong with it.
    pub why: String,
}

/// The error frame that the server sent instead of OK.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} ({code})")]
pub struct ServerError {
    /// The word to branch on.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
    /// When to come again, where the server said so.
    pub retry_after_ms: Option<u64>,
    /// With `seq_mismatch`: the position that the server found.
    pub actual: Option<u64>,
}

/// A value that is no JSON, or JSON that is no such value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct BadValue {
    /// What serde said.
    pub why: String,
}

/// Why there is no connection, or why the client ended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The URL is not one.
    #[error(transparent)]
    BadUrl(#[from] BadUrl),
    /// The client runs its connection as a task and needs a runtime to put it on.
    #[error("connect inside a tokio runtime that has I/O and time enabled")]
    NoRuntime,
    /// The server could not be reached, or the connection broke.
    #[error(
        "{url} cannot be reached: {why}; check that the server runs and that the address is right"
    )]
    Unreachable {
        /// Where to.
        url: String,
        /// What the system said.
        why: String,
    },
    /// Something answered that is no prombus server, or not one of this protocol.
    #[error(
        "{url} does not speak the protocol: {why}; check the path (it is /ws) and the server's version"
    )]
    Protocol {
        /// Where to.
        url: String,
        /// What was wrong.
        why: String,
    },
    /// Connecting, the upgrade and AUTH took longer than `handshake_timeout`.
    #[error(
        "{url} did not answer within {timeout_ms} ms; check the address, or raise handshake_timeout"
    )]
    Timeout {
        /// Where to.
        url: String,
        /// `handshake_timeout`.
        timeout_ms: u64,
    },
    /// The server does not take the token.
    #[error("the server refused the token: {0}; give a valid one with ClientOptions::token")]
    Refused(ServerError),
    /// The token provider gave no token.
    #[error("the token provider gave no token: {why}")]
    NoToken {
        /// What the provider said.
        why: String,
    },
    /// As many attempts failed as [`Reconnect::max_attempts`](crate::Reconnect::max_attempts) allows.
    #[error("gave up after {attempts} attempts; the last one: {last}")]
    GaveUp {
        /// How many failed in a row.
        attempts: u32,
        /// Why the last one failed.
        last: Box<ConnectError>,
    },
    /// The client was closed.
    #[error("the client is closed; make a new one with Client::connect")]
    Closed,
}

/// Why an event was not published, or is not known to be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishError {
    /// The payload is no JSON. Nothing was sent.
    #[error("the payload is no JSON: {0}")]
    BadJson(BadValue),
    /// The server refused it. Nothing was stored.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// The connection broke before the answer, and the publish had no id that would make sending it again safe.
    #[error(
        "the connection broke before the answer, so the event may be stored or not; publish with an id, or leave ClientOptions::idempotent on"
    )]
    UnknownOutcome,
    /// The client ended before the answer. Where it had been sent, the event may be stored.
    #[error(transparent)]
    Ended(#[from] Arc<ConnectError>),
}

/// A batch that was to be published as a whole was not.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PublishAtomicError {
    /// One of its events cannot be sent. Nothing was.
    #[error("event {at} of the batch: {error}")]
    NotPublished {
        /// Its place.
        at: usize,
        /// What is wrong with it.
        error: PublishError,
    },
    /// The request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Why a request failed. Requests go over HTTP and are not sent again by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    /// Something in it cannot be sent. Nothing was.
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    /// The server could not be reached, or the connection broke before the reply was there.
    #[error(
        "{url} cannot be reached: {why}; check that the server runs and that the address is right"
    )]
    Unreachable {
        /// Where to.
        url: String,
        /// What the system said.
        why: String,
    },
    /// The token provider gave no token.
    #[error("the token provider gave no token: {why}")]
    NoToken {
        /// What the provider said.
        why: String,
    },
    /// The server refused it.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// What came back is not as it should be.
    #[error("the reply cannot be read: {why}")]
    BadReply {
        /// What is wrong with it.
        why: String,
    },
}

/// A topic was removed and made again while it was followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "topic {topic} is another one now: its tail is at {tail_seq}, and {next_seq} was to be read next; begin again from 1"
)]
pub struct TopicReplaced {
    /// The topic.
    pub topic: String,
    /// The position that was to be read next.
    pub next_seq: u64,
    /// The topic's newest position now.
    pub tail_seq: u64,
}

/// Too many keys changed while a table was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("too many keys of topic {topic} changed while its table was loaded; load it again")]
pub struct StateMoved {
    /// The topic.
    pub topic: String,
}

/// Why a topic cannot be loaded or followed any further.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FollowError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The server does not let one wait for more.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// The topic was removed and made again.
    #[error(transparent)]
    TopicReplaced(#[from] TopicReplaced),
    /// Too many keys changed while the table was loaded.
    #[error(transparent)]
    StateMoved(#[from] StateMoved),
    /// The client ended.
    #[error(transparent)]
    Ended(Arc<ConnectError>),
}

/// Why there is no subscription.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SubscribeError {
    /// An option makes no sense.
    #[error(transparent)]
    InvalidField(#[from] InvalidField),
    /// The server refused it.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// The client ended.
    #[error(transparent)]
    Ended(#[from] Arc<ConnectError>),
}

/// Why an acknowledgement, its opposite or an extension settled nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettleError {
    /// The server refused it: `lease_lost` where another member holds the event, `unknown_id` where no member does.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// The connection that the event was delivered on is gone, and with it the lease. The event comes again.
    #[error("the connection broke, and the lease with it; the event comes again")]
    ConnectionLost,
    /// The client ended.
    #[error(transparent)]
    Ended(#[from] Arc<ConnectError>),
}

/// Why events are not known to be acknowledged and what was to be published with them is not known to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AckPublishError {
    /// An event of the batch is no JSON. Nothing was sent.
    #[error("publish {at}: {error}")]
    NotPublished {
        /// Its place in the batch, from 0.
        at: usize,
        /// What is wrong with it.
        error: PublishError,
    },
    /// The events came from several subscriptions or topics, or there are none. Nothing was sent.
    #[error("ack_and_publish needs at least one event, all from one subscription and one topic")]
    NotOneGroup,
    /// The server refused it, and nothing of it happened: `lease_lost` where another member holds an event or it is
    /// settled already, or the word for what is wrong with an event that was to be published.
    #[error(transparent)]
    Refused(#[from] ServerError),
    /// The connection that the events were delivered on is gone, and with it their leases. Nothing was sent; they come
    /// again.
    #[error(
        "the connection broke, and the lease with it; nothing was published, and the event is redelivered"
    )]
    ConnectionLost,
    /// The connection broke before the answer. All of the step has happened or nothing of it: if the event comes again,
    /// nothing has.
    #[error(
        "the connection broke before the answer, so either everything was committed or nothing; if nothing was, the event is redelivered"
    )]
    UnknownOutcome,
    /// The client ended before the answer.
    #[error(transparent)]
    Ended(#[from] Arc<ConnectError>),
}

impl ConnectError {
    /// The word to branch on: the server's, or one of the client's own.
    pub fn code(&self) -> &str {
        match self {
            Self::BadUrl(_) => "bad_url",
            Self::NoRuntime => "no_runtime",
            Self::Unreachable { .. } => "unreachable",
            Self::Protocol { .. } => "protocol_error",
            Self::Timeout { .. } => "timeout",
            Self::Refused(error) => &error.code,
            Self::NoToken { .. } => "no_token",
            Self::GaveUp { .. } => "gave_up",
            Self::Closed => "closed",
        }
    }
}

impl PublishError {
    /// The word to branch on: the server's, or one of the client's own.
    pub fn code(&self) -> &str {
        match self {
            Self::BadJson(_) => "bad_json",
            Self::Refused(error) => &error.code,
            Self::UnknownOutcome => "unknown_outcome",
            Self::Ended(error) => error.code(),
        }
    }

    /// When to come again, where the server said so.
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Refused(error) => error.retry_after_ms,
            _ => None,
        }
    }
}

impl PublishAtomicError {
    /// The word to branch on: the server's, or one of the client's own.
    pub fn code(&self) -> &str {
        match self {
            Self::NotPublished { error, .. } => error.code(),
            Self::Request(error) => error.code(),
        }
    }
}

impl RequestError {
    /// The word to branch on: the server's, or one of the client's own.
    pub fn code(&self) -> &str {
        match self {
            Self::InvalidField(_) => "bad_request",
            Self::Unreachable { .. } => "unreachable",
            Self::NoToken { .. } => "no_token",
            Self::Refused(error) => &error.code,
            Self::BadReply { .. } => "bad_reply",
        }
    }

    /// When to come again, where the server said so.
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Refused(error) => error.retry_after_ms,
            _ => None,
        }
    }
}

impl FollowError {
    /// The word to branch on: the server's, or one of the client's own.
    pub fn code(&self) -> &str {
        match self {
            Self::Request(error) => error.code(),
            Self::Refused(error) => &error.code,
            Self::TopicReplaced(_) => "topic_replaced",
            Self::StateMoved(_) => "state_moved",
            Self::Ended(error) => error.code(),
        }
    }
}

impl From<SubscribeError> for FollowError {
    fn from(error: SubscribeError) -> Self {
        match error {
            SubscribeError::InvalidField(error) => RequestError::from(error).into(),
            SubscribeError::Refused(error) => error.into(),
            SubscribeError::Ended(error) => Self::Ended(error),
        }
    }
}

impl From<Ended> for FollowError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Unsubscribed => Self::Ended(Arc::new(ConnectError::Closed)),
            Ended::Refused(error) => error.into(),
            Ended::Client(error) => Self::Ended(error),
        }
    }
}

impl SubscribeError {
    /// The word to branch on: the server's, or one of the client's own.
    pub fn code(&self) -> &str {
        match self {
            Self::InvalidField(_) => "bad_option",
            Self::Refused(error) => &error.code,
            Self::Ended(error) => error.code(),
        }
    }
}

impl AckPublishError {
    /// The word to branch on: the server's, or one of the client's own.
    pub fn code(&self) -> &str {
        match self {
            Self::NotPublished { error, .. } => error.code(),
            Self::NotOneGroup => "bad_frame",
            Self::Refused(error) => &error.code,
            Self::ConnectionLost => "connection_lost",
            Self::UnknownOutcome => "unknown_outcome",
            Self::Ended(error) => error.code(),
        }
    }

    /// When to come again, where the server said so.
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Refused(error) => error.retry_after_ms,
            _ => None,
        }
    }
}

impl SettleError {
    /// The word to branch on: the server's, or one of the client's own.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(error) => &error.code,
            Self::ConnectionLost => "connection_lost",
            Self::Ended(error) => error.code(),
        }
    }
}
