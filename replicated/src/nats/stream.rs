//! The stream of a cluster: how it is made, and whether one that is there can carry commits.

use super::request::is_temporary;
use super::{NatsUrl, OpenStreamError};
use async_nats::Client;
use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, GetStreamErrorKind,
};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, StorageType};
use async_nats::jetstream::{self, Context, ErrorCode};
use std::collections::HashMap;
use std::time::Duration;

const FORMAT_KEY: &str = "prombus-format";
const FORMAT: &str = "1";
const LOG_ID_KEY: &str = "prombus-log";
/// How long a request about a stream may take. One that comes while servers elect a leader gets no reply at all.
const FIND_LIMIT: Duration = Duration::from_secs(2);
/// Making a stream of several replicas waits for its first leader.
const CREATE_LIMIT: Duration = Duration::from_secs(10);

/// A stream that can carry commits.
pub(super) struct Opened {
    pub(super) log_id: u64,
    pub(super) replicas: usize,
}

/// Where commits are published.
pub(super) fn commit_subject(stream: &str) -> String {
    format!("{stream}.commit")
}

/// Where the stream says what it has stored.
pub(super) fn live_subject(stream: &str) -> String {
    format!("{stream}.live")
}

/// Opens the stream, or makes it.
pub(super) async fn open(
    client: &Client,
    url: &NatsUrl,
    new_log_id: u64,
) -> Result<Opened, OpenStreamError> {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(FIND_LIMIT);
    if let Some(found) = find(&context, url).await? {
        return check(url, &found);
    }
    let mut creating = context.clone();
    creating.set_timeout(CREATE_LIMIT);
    match creating.create_stream(config(url, new_log_id)).await {
        Ok(_) => {}
        // Another node was faster.
        Err(error) if is_in_use(&error.kind()) => {}
        Err(error) => return Err(create_error(url, &error)),
    }
    let found = find(&context, url).await?;
    let found = found.ok_or_else(|| refused(url, "it is gone again".into()))?;
    check(url, &found)
}

async fn find(context: &Context, url: &NatsUrl) -> Result<Option<Config>, OpenStreamError> {
    match context.get_stream(&url.stream).await {
        Ok(stream) => Ok(Some(stream.cached_info().config.clone())),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error)
                if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                Ok(None)
            }
            GetStreamErrorKind::Request => Err(unanswered(url, error.to_string())),
            GetStreamErrorKind::JetStream(found) if passes(&found) => {
                Err(unanswered(url, error.to_string()))
            }
            _ => Err(refused(url, error.to_string())),
        },
    }
}

fn create_error(url: &NatsUrl, error: &CreateStreamError) -> OpenStreamError {
    let is_unanswered = match error.kind() {
        CreateStreamErrorKind::TimedOut
        | CreateStreamErrorKind::JetStreamUnavailable
        | CreateStreamErrorKind::Response => true,
        CreateStreamErrorKind::JetStream(error) => passes(&error),
        _ => false,
    };
    let error_of = if is_unanswered { unanswered } else { refused };
    error_of(url, error.to_string())
}

fn passes(error: &jetstream::Error) -> bool {
    u16::try_from(error.error_code().0).is_ok_and(is_temporary)
}

fn unanswered(url: &NatsUrl, cause: String) -> OpenStreamError {
    OpenStreamError::Unanswered {
        stream: url.stream.clone(),
        cause,
    }
}

fn is_in_use(kind: &CreateStreamErrorKind) -> bool {
    matches!(kind, CreateStreamErrorKind::JetStream(error)
        if error.error_code() == ErrorCode::STREAM_NAME_EXIST)
}

fn refused(url: &NatsUrl, cause: String) -> OpenStreamError {
    OpenStreamError::Refused {
        stream: url.stream.clone(),
        cause,
    }
}

fn config(url: &NatsUrl, log_id: u64) -> Config {
    let name = url.stream.clone();
    Config {
        subjects: vec![commit_subject(&name)],
        storage: StorageType::File,
        num_replicas: url.replicas,
        allow_direct: true,
        deny_delete: true,
        discard: DiscardPolicy::New,
        republish: Some(Republish {
            source: commit_subject(&name),
            destination: live_subject(&name),
            headers_only: false,
        }),
        metadata: HashMap::from([
            (FORMAT_KEY.to_owned(), FORMAT.to_owned()),
            (LOG_ID_KEY.to_owned(), format!("{log_id:016x}")),
        ]),
        description: Some("Commits of a prombus cluster".into()),
        name,
        ..Config::default()
    }
}

/// Refuses a stream of somebody else, and one that would forget commits by itself.
fn check(url: &NatsUrl, found: &Config) -> Result<Opened, OpenStreamError> {
    let unfit = |cause: &str| OpenStreamError::Unfit {
        stream: url.stream.clone(),
        cause: cause.into(),
    };
    if found
        .metadata
        .get(FORMAT_KEY)
        .is_none_or(|format| format != FORMAT)
    {
        return Err(unfit("it was not made by prombus, or by another version"));
    }
    let log_id = found.metadata.get(LOG_ID_KEY);
    let log_id = log_id.and_then(|text| u64::from_str_radix(text, 16).ok());
    let log_id = log_id.ok_or_else(|| unfit("its metadata lacks the log's number"))?;
    let is_limited = found.max_age > Duration::ZERO || found.max_messages > 0;
    let rules = [
        (
            is_limited,
            "max_age or max_msgs is set, so it would forget commits",
        ),
        (
            found.discard != DiscardPolicy::New,
            "discard is not new, so it would forget commits when it is full",
        ),
        (found.storage != StorageType::File, "it is kept in memory"),
        (!found.allow_direct, "allow_direct is off"),
        (found.republish.is_none(), "it does not republish"),
        (found.sealed, "it is sealed"),
    ];
    match rules.iter().find(|(is_broken, _)| *is_broken) {
        Some((_, cause)) => Err(unfit(cause)),
        None => Ok(Opened {
            log_id,
            replicas: found.num_replicas,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stream_that_keeps_everything_is_taken() {
        let url = NatsUrl::parse("nats://a/orders?replicas=3").expect("a URL");
        let good = config(&url, 0xabc);
        let opened = check(&url, &good).expect("a good stream");
        assert_eq!((opened.log_id, opened.replicas), (0xabc, 3));
        let bad = [
            Config {
                metadata: HashMap::new(),
                ..good.clone()
            },
            Config {
                max_age: Duration::from_secs(1),
                ..good.clone()
            },
            Config {
                max_messages: 9,
                ..good.clone()
            },
            Config {
                discard: DiscardPolicy::Old,
                ..good.clone()
            },
            Config {
                storage: StorageType::Memory,
                ..good.clone()
            },
            Config {
                allow_direct: false,
                ..good.clone()
            },
            Config {
                republish: None,
                ..good.clone()
            },
            Config {
                sealed: true,
                ..good
            },
        ];
        for config in bad {
            let error = check(&url, &config).err().expect("an unfit stream");
            assert!(
                error
                    .to_string()
                    .starts_with("stream orders cannot carry commits"),
                "{error}"
            );
        }
    }
}
