//! An event that is published together with other versions of itself, each in its own topic: all are stored, or none.

use crate::api_error::ApiError;
use crate::batch_spans::BatchSpans;
use crate::gateway::Gateway;
use crate::to_bus::to_bus_publish_options;
use prombus::error::NotPublished;
use prombus::{PublishBatch, PublishOptions, Published};
use prombus_api::Code;
use prombus_api::options::PublishOptions as WireOptions;
use std::sync::Arc;

/// The most versions that are published with an event.
const MAX_ALSO_PUBLISHED: usize = 16;

/// An event and its other versions.
pub(crate) struct Versions {
    batch: PublishBatch,
    topics: Vec<Arc<str>>,
    bytes: usize,
    spans: BatchSpans,
}

/// What is stored of them.
pub(crate) type StoredVersions = Vec<(Arc<str>, Published)>;

/// Refuses what cannot be published together.
pub(crate) fn check(options: &WireOptions<'_>) -> Result<(), ApiError> {
    let bad = |message| Err(ApiError::new(Code::BadFrame, message));
    if options.is_scheduled() {
        return bad(
            "also_publish: not allowed with deliver_at, delay_ms, every and catch_up".to_owned(),
        );
    }
    if options.also_publish.len() > MAX_ALSO_PUBLISHED {
        return bad(format!(
            "also_publish: may have at most {MAX_ALSO_PUBLISHED} events"
        ));
    }
    Ok(())
}

impl Versions {
    /// `topics` are those of `also_publish`, which the publisher was found to be allowed.
    pub(crate) fn new(
        gateway: &Gateway,
        (topic, payload): (Arc<str>, &str),
        options: &WireOptions<'_>,
        topics: Vec<Arc<str>>,
    ) -> Self {
        let first = to_bus_publish_options(options);
        let shared = PublishOptions {
            expect_seq: None,
            expect_key_seq: None,
            ..first
        };
        let mut batch = gateway.bus.batch();
        batch.add(&topic, payload, &first);
        let mut bytes = payload.len();
        let mut spans = BatchSpans::default();
        spans.add(gateway, &topic, &options.headers);
        for (topic, also) in topics.iter().zip(&options.also_publish) {
            batch.add(topic, &also.payload, &shared);
            bytes += also.payload.len();
            spans.add(gateway, topic, &options.headers);
        }
        Self {
            batch,
            topics: [topic].into_iter().chain(topics).collect(),
            bytes,
            spans,
        }
    }

    /// The bytes of all payloads.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Stores them, and says where each is, the event itself first.
    pub(crate) async fn publish(self, gateway: &Gateway) -> Result<StoredVersions, ApiError> {
        let stored = gateway.bus.publish_atomic(self.batch).await;
        self.spans.end_atomic(gateway, &stored);
        let stored = stored.map_err(blame)?;
        for (topic, published) in self.topics.iter().zip(&stored) {
            if !published.duplicate {
                gateway.metrics.topic(topic).published.increment();
            }
        }
        Ok(self.topics.into_iter().zip(stored).collect())
    }
}

/// Says which of the versions is to blame, unless it is the event itself.
fn blame(NotPublished { at, error }: NotPublished) -> ApiError {
    let mut error = ApiError::from(error);
    if let Some(also) = at.checked_sub(1) {
        error.message = format!("also_publish[{also}]: {}", error.message);
    }
    error
}
