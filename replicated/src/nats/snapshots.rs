//! Snapshots in a stream of their own, `<stream>-snapshots`: chunk k of snapshot p is the message of the subject
//! `<stream>.snapshot.p.k`. The stream is made with the first chunk, with as many replicas as the log has.

use super::request::{Api, ApiFailure};
use crate::{Snapshots, Unavailable};
use async_nats::Client;
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, ErrorCode};
use bytes::Bytes;
use prombus_store::Answer;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Making a stream of several replicas waits for its first leader.
const CREATE_LIMIT: Duration = Duration::from_secs(10);

/// The snapshots of a log in JetStream.
#[derive(Clone)]
pub(super) struct JetStreamSnapshots {
    client: Client,
    api: Api,
    stream: Arc<str>,
    replicas: usize,
    is_made: Arc<AtomicBool>,
}

impl JetStreamSnapshots {
    pub(super) fn new(client: Client, stream: &str, replicas: usize) -> Self {
        Self {
            api: Api::new(client.clone(), &format!("{stream}-snapshots")),
            client,
            stream: stream.into(),
            replicas,
            is_made: Arc::default(),
        }
    }

    fn subject(&self, snapshot: u64, chunk: u32) -> String {
        format!("{}.snapshot.{snapshot}.{chunk}", self.stream)
    }

    /// Makes the stream where there is none.
    async fn make(&self) -> Result<(), Unavailable> {
        if self.is_made.load(Ordering::Relaxed) {
            return Ok(());
        }
        let config = Config {
            name: format!("{}-snapshots", self.stream),
            subjects: vec![format!("{}.snapshot.>", self.stream)],
            storage: StorageType::File,
            num_replicas: self.replicas,
            max_messages_per_subject: 1,
            allow_direct: true,
            discard: DiscardPolicy::New,
            metadata: HashMap::from([("prombus-snapshots".to_owned(), "1".to_owned())]),
            description: Some("Snapshots of a prombus cluster's copies".into()),
            ..Config::default()
        };
        let mut context = jetstream::new(self.client.clone());
        context.set_timeout(CREATE_LIMIT);
        match context.create_stream(config).await {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NAME_EXIST) =>
                {}
            Err(error) => {
                return Err(Unavailable {
                    cause: format!("JetStream makes no stream for snapshots: {error}").into(),
                });
            }
        }
        self.is_made.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Snapshots for JetStreamSnapshots {
    fn put(&self, snapshot: u64, chunk: u32, bytes: Bytes) -> Answer<(), Unavailable> {
        let this = self.clone();
        Box::pin(async move {
            this.make().await?;
            let appended = this.api.append(this.subject(snapshot, chunk), bytes).await;
            match appended {
                Ok(_) => Ok(()),
                Err(error) => {
                    // Somebody may have removed it.
                    this.is_made.store(false, Ordering::Relaxed);
                    Err(Unavailable {
                        cause: error.to_string().into(),
                    })
                }
            }
        })
    }

    fn get(&self, snapshot: u64, chunk: u32) -> Answer<Option<Bytes>, Unavailable> {
        let this = self.clone();
        Box::pin(async move {
            let found = this.api.last_of(&this.subject(snapshot, chunk)).await;
            Ok(found?.map(|(_, bytes)| bytes))
        })
    }

    fn list(&self) -> Answer<Vec<u64>, Unavailable> {
        let this = self.clone();
        Box::pin(async move {
            let filter = format!("{}.snapshot.*.0", this.stream);
            let subjects = match this.api.subjects(&filter).await {
                Ok(subjects) => subjects,
                Err(failure) if failure.is_stream_missing() => return Ok(Vec::new()),
                Err(failure) => return Err(failure.into()),
            };
            let number = |subject: &String| subject.split('.').rev().nth(1)?.parse().ok();
            let mut snapshots: Vec<u64> = subjects.iter().filter_map(number).collect();
            snapshots.sort_unstable();
            Ok(snapshots)
        })
    }

    fn remove_below(&self, snapshot: u64) -> Answer<(), Unavailable> {
        let this = self.clone();
        Box::pin(async move {
            // All chunks of older snapshots were stored before the first one of this.
            match this.api.last_of(&this.subject(snapshot, 1)).await? {
                Some((sequence, _)) if sequence > 1 => this.api.purge(sequence - 1).await,
                _ => Ok(()),
            }
        })
    }
}

impl ApiFailure {
    fn is_stream_missing(&self) -> bool {
        const STREAM_NOT_FOUND: u16 = 10059;
        matches!(
            self,
            Self::Refused {
                code: STREAM_NOT_FOUND,
                ..
            }
        )
    }
}
