//! The few requests of JetStream's API that a shared log needs.

use crate::{AppendError, Bounds, Unavailable};
use async_nats::client::{Request, RequestErrorKind};
use async_nats::{Client, Message};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::HashMap;
use std::time::Duration;

/// How long a request may take. Whoever waits for a commit has given up by then.
const REQUEST_LIMIT: Duration = Duration::from_secs(2);
/// The status of a direct get for a message that is not there.
const NOT_FOUND: u16 = 404;
/// The codes of JetStream for a message that is not there.
const NO_MESSAGE_FOUND: u16 = 10037;
/// Codes of what passes by itself: no quorum, no leader, a server that is starting, resources of the cluster.
const TEMPORARY: [u16; 6] = [10008, 10009, 10011, 10074, 10118, 10167];

/// Whether an error of JetStream passes by itself.
pub(super) fn is_temporary(code: u16) -> bool {
    TEMPORARY.contains(&code)
}

/// Requests about one stream.
#[derive(Debug, Clone)]
pub(super) struct Api {
    client: Client,
    info: String,
    direct_get: String,
    message_get: String,
    purge: String,
}

/// Why a request gave nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum ApiFailure {
    #[error("{}", describe(.0))]
    Request(RequestErrorKind),
    #[error("JetStream says: {description} ({code})")]
    Refused {
        code: u16,
        description: String,
        is_temporary: bool,
    },
    #[error("an answer that cannot be read: {0}")]
    Garbage(String),
}

/// An answer of the API: what was asked for, or an error.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reply<T> {
    Error { error: ApiError },
    Fine(T),
}

#[derive(Deserialize)]
struct ApiError {
    #[serde(default)]
    err_code: u16,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Stored {
    seq: u64,
}

#[derive(Deserialize)]
struct StreamInfo {
    state: StreamState,
}

#[derive(Deserialize)]
struct StreamState {
    messages: u64,
    #[serde(default)]
    bytes: u64,
    first_seq: u64,
    last_seq: u64,
    /// Subjects with how many messages they have, where they were asked for.
    #[serde(default)]
    subjects: HashMap<String, u64>,
}

#[derive(Deserialize)]
struct Purged {
    #[allow(dead_code, reason = "it tells the answer from an error")]
    success: bool,
}

#[derive(Deserialize)]
struct Found {
    #[allow(dead_code, reason = "it tells the answer from an error")]
    message: serde_json::Value,
}

impl Api {
    pub(super) fn new(client: Client, stream: &str) -> Self {
        Self {
            client,
            info: format!("$JS.API.STREAM.INFO.{stream}"),
            direct_get: format!("$JS.API.DIRECT.GET.{stream}"),
            message_get: format!("$JS.API.STREAM.MSG.GET.{stream}"),
            purge: format!("$JS.API.STREAM.PURGE.{stream}"),
        }
    }

    /// Publishes to the stream and returns the sequence that the message was given.
    pub(super) async fn append(&self, subject: String, message: Bytes) -> Result<u64, AppendError> {
        let reply = self.request(&subject, message).await?;
        let stored: Stored = parse(&reply)?;
        Ok(stored.seq)
    }

    /// Where the stream begins and ends, as its leader says.
    pub(super) async fn bounds(&self) -> Result<Bounds, Unavailable> {
        let reply = self.request(&self.info, Bytes::new()).await?;
        let info: StreamInfo = parse(&reply)?;
        let StreamState {
            messages,
            first_seq,
            last_seq,
            ..
        } = info.state;
        let first = if messages == 0 {
            last_seq + 1
        } else {
            first_seq
        };
        let last = last_seq;
        Ok(Bounds { first, last })
    }

    /// How many bytes the stream takes.
    pub(super) async fn bytes(&self) -> Result<u64, ApiFailure> {
        let reply = self.request(&self.info, Bytes::new()).await?;
        let info: StreamInfo = parse(&reply)?;
        Ok(info.state.bytes)
    }

    /// The subjects of the stream that fit a filter.
    pub(super) async fn subjects(&self, filter: &str) -> Result<Vec<String>, ApiFailure> {
        let body = format!("{{\"subjects_filter\":\"{filter}\"}}");
        let reply = self.request(&self.info, body.into()).await?;
        let info: StreamInfo = parse(&reply)?;
        Ok(info.state.subjects.into_keys().collect())
    }

    /// The last message of a subject with its sequence, from whichever replica answers.
    pub(super) async fn last_of(&self, subject: &str) -> Result<Option<(u64, Bytes)>, ApiFailure> {
        let body = format!("{{\"last_by_subj\":\"{subject}\"}}");
        let reply = self.request(&self.direct_get, body.into()).await?;
        match reply.status.map(|status| status.as_u16()) {
            None => {}
            Some(NOT_FOUND) => return Ok(None),
            Some(status) => return Err(ApiFailure::Garbage(format!("status {status}"))),
        }
        let sequence = sequence_of(&reply);
        let sequence = sequence.ok_or_else(|| ApiFailure::Garbage("no sequence".into()))?;
        Ok(Some((sequence, reply.payload)))
    }

    /// Removes all messages up to and with a sequence.
    pub(super) async fn purge(&self, through: u64) -> Result<(), Unavailable> {
        let body = format!("{{\"seq\":{}}}", through + 1);
        let reply = self.request(&self.purge, body.into()).await?;
        let _: Purged = parse(&reply)?;
        Ok(())
    }

    /// A message, from whichever replica answers; `None` where that one does not have it.
    pub(super) async fn get(&self, sequence: u64) -> Result<Option<Bytes>, ApiFailure> {
        let body = format!("{{\"seq\":{sequence}}}");
        let reply = self.request(&self.direct_get, body.into()).await?;
        match reply.status.map(|status| status.as_u16()) {
            None => {}
            Some(NOT_FOUND) => return Ok(None),
            Some(status) => return Err(ApiFailure::Garbage(format!("status {status}"))),
        }
        if sequence_of(&reply) != Some(sequence) {
            return Err(ApiFailure::Garbage("another message".into()));
        }
        Ok(Some(reply.payload))
    }

    /// Whether the leader has a message.
    pub(super) async fn leader_has(&self, sequence: u64) -> Result<bool, ApiFailure> {
        let body = format!("{{\"seq\":{sequence}}}");
        let reply = self.request(&self.message_get, body.into()).await?;
        match parse::<Found>(&reply) {
            Ok(_) => Ok(true),
            Err(ApiFailure::Refused {
                code: NO_MESSAGE_FOUND,
                ..
            }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn request(&self, subject: &str, body: Bytes) -> Result<Message, ApiFailure> {
        let request = Request::new().payload(body).timeout(Some(REQUEST_LIMIT));
        let reply = self.client.send_request(subject.to_owned(), request).await;
        reply.map_err(|error| ApiFailure::Request(error.kind()))
    }
}

/// The stream sequence of a message that was republished or fetched.
pub(super) fn sequence_of(message: &Message) -> Option<u64> {
    let headers = message.headers.as_ref()?;
    headers.get("Nats-Sequence")?.as_str().parse().ok()
}

fn parse<T: for<'a> Deserialize<'a>>(reply: &Message) -> Result<T, ApiFailure> {
    parse_body(&reply.payload)
}

fn parse_body<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, ApiFailure> {
    match serde_json::from_slice(body) {
        Ok(Reply::Fine(reply)) => Ok(reply),
        Ok(Reply::Error { error }) => Err(ApiFailure::Refused {
            code: error.err_code,
            description: error.description,
            is_temporary: is_temporary(error.err_code),
        }),
        Err(error) => Err(ApiFailure::Garbage(error.to_string())),
    }
}

fn describe(kind: &RequestErrorKind) -> &'static str {
    match kind {
        RequestErrorKind::TimedOut => "no answer from JetStream",
        RequestErrorKind::NoResponders => "the stream has no leader, or is gone",
        RequestErrorKind::InvalidSubject => "an invalid subject",
        RequestErrorKind::MaxPayloadExceeded => "the message exceeds the servers' max_payload",
        RequestErrorKind::Other => "the connection to NATS is broken",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_and_errors_are_told_apart() {
        let stored: Stored = parse_body(br#"{"stream":"S","seq":7}"#).expect("stored");
        assert_eq!(stored.seq, 7);
        let full = br#"{"error":{"code":400,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"S","seq":0}"#;
        let failure = parse_body::<Stored>(full).err().expect("an error");
        assert!(matches!(
            AppendError::from(failure),
            AppendError::Rejected { .. }
        ));
        let no_quorum = br#"{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}"#;
        let failure = parse_body::<Stored>(no_quorum).err().expect("an error");
        assert!(matches!(
            AppendError::from(failure),
            AppendError::Unknown { .. }
        ));
        assert!(parse_body::<Stored>(b"").is_err());
    }
}
