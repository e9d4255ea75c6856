//! ACK with `publish`: results are published atomically with the acknowledgement of their input. Consecutive frames of
//! one topic share a batch, each as a transaction of its own.

use super::correlation_ids::CorrelationIds;
use super::outbound::Outbound;
use super::publish_batch::write_api_error;
use super::subscriptions::{Member, Subscriptions};
use crate::api_error::ApiError;
use crate::batch_spans::BatchSpans;
use crate::error_log::ErrorSource;
use crate::gateway::Gateway;
use crate::to_bus::{check_no_own_commit, to_bus_publish_options};
use prombus::{AckPublish, AckPublishesFuture, PublishBatch, Published};
use prombus_api::Code;
use prombus_api::frames::{Ids, Publish, PublishedFrame, write_ack_published};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The most frames of one batch.
const MAX_BATCH_ACK_PUBLISHES: usize = 1_024;

/// Frames that were not sent to the bus yet.
#[derive(Debug)]
pub(super) struct AckPublishBatch {
    topic: Arc<str>,
    steps: Vec<AckPublish>,
    frames: PendingFrames,
}

/// Frames that were sent to the bus.
pub(super) struct PendingAckPublish {
    results: AckPublishesFuture,
    topic: Arc<str>,
    frames: PendingFrames,
}

/// Frames that wait for their replies.
#[derive(Debug)]
struct PendingFrames {
    /// Number of the subscription.
    member: u64,
    correlation_ids: CorrelationIds,
    frames: Vec<PendingFrame>,
    /// The bytes of all payloads.
    bytes: usize,
}

/// What is kept of one frame.
#[derive(Debug)]
struct PendingFrame {
    /// The hashes of the ids.
    hashes: Vec<u64>,
    /// Where its events go, one for each.
    topics: Vec<Arc<str>>,
    spans: BatchSpans,
}

/// The events that one frame publishes.
pub(super) struct AckPublishEvents {
    batch: PublishBatch,
    topics: Vec<Arc<str>>,
    bytes: usize,
    spans: BatchSpans,
}

impl AckPublishEvents {
    pub(super) fn new(batch: PublishBatch) -> Self {
        Self {
            batch,
            topics: Vec::new(),
            bytes: 0,
            spans: BatchSpans::default(),
        }
    }

    pub(super) fn add(
        &mut self,
        gateway: &Gateway,
        topic: Arc<str>,
        publish: &Publish<'_>,
    ) -> Result<(), ApiError> {
        check_no_own_commit(&publish.options)?;
        self.batch.add(
            &topic,
            publish.payload,
            &to_bus_publish_options(&publish.options),
        );
        self.bytes += publish.payload.len();
        self.spans.add(gateway, &topic, &publish.options.headers);
        self.topics.push(topic);
        Ok(())
    }

    /// How many events go to each topic.
    pub(super) fn counts(&self) -> BTreeMap<&str, u32> {
        let mut counts = BTreeMap::new();
        for topic in &self.topics {
            *counts.entry(&**topic).or_default() += 1;
        }
        counts
    }
}

impl Member {
    /// The one topic that events came from, where the client named them by its pattern.
    pub(super) fn topic_of(&self, ids: &Ids<'_>) -> Result<Arc<str>, ApiError> {
        let mut found: Option<&Arc<str>> = None;
        for id in ids.as_slice() {
            let Some(topic) = self.in_flight.topic_of(self.in_flight.hash(id)) else {
                let message = format!(
                    "{id:?} is no longer in flight; use its own topic instead of the pattern"
                );
                return Err(ApiError::new(Code::UnknownId, message));
            };
            if found.is_some_and(|found| found != topic) {
                let message = "ids: must be of one topic";
                return Err(ApiError::new(Code::BadFrame, message));
            }
            found = Some(topic);
        }
        let none = || ApiError::new(Code::BadFrame, "ids: must not be empty");
        found.cloned().ok_or_else(none)
    }
}

impl AckPublishBatch {
    pub(super) fn new(member: &Member, topic: Arc<str>) -> Self {
        Self {
            topic,
            steps: Vec::new(),
            frames: PendingFrames {
                member: member.number,
                correlation_ids: CorrelationIds::default(),
                frames: Vec::new(),
                bytes: 0,
            },
        }
    }

    /// Whether frames of this topic through this subscription fit into the batch.
    pub(super) fn fits(&self, member: &Member, topic: &str) -> bool {
        self.frames.member == member.number
            && *self.topic == *topic
            && self.steps.len() < MAX_BATCH_ACK_PUBLISHES
    }

    pub(super) fn add(
        &mut self,
        member: &Member,
        ids: &Ids<'_>,
        results: AckPublishEvents,
        corr: Option<&str>,
    ) {
        let ids = ids.as_slice();
        self.steps.push(AckPublish {
            ids: ids.iter().map(|id| (**id).to_owned()).collect(),
            batch: results.batch,
        });
        self.frames.bytes += results.bytes;
        self.frames.correlation_ids.push(corr);
        self.frames.frames.push(PendingFrame {
            hashes: ids.iter().map(|id| member.in_flight.hash(id)).collect(),
            topics: results.topics,
            spans: results.spans,
        });
    }

    pub(super) fn member(&self) -> u64 {
        self.frames.member
    }

    /// Sends them to the bus.
    pub(super) fn send(self, member: &Member) -> PendingAckPublish {
        PendingAckPublish {
            results: member.control.ack_ids_and_publish(&self.topic, self.steps),
            topic: self.topic,
            frames: self.frames,
        }
    }
}

impl PendingAckPublish {
    /// How many frames wait for a reply.
    pub(super) fn frames(&self) -> usize {
        self.frames.frames.len()
    }

    /// The bytes that are on their way to the store.
    pub(super) fn bytes(&self) -> usize {
        self.frames.bytes
    }

    /// Writes the replies once the results are known, and counts what became of the events.
    pub(super) fn poll_replies(
        &mut self,
        context: &mut Context<'_>,
        (gateway, source): (&Gateway, &ErrorSource<'_>),
        subscriptions: &mut Subscriptions,
        outbound: &mut Outbound,
    ) -> Poll<()> {
        let results = ready!(Pin::new(&mut self.results).poll(context));
        let (frames, now) = (&mut self.frames, gateway.now());
        let pending = frames.correlation_ids.iter();
        for ((corr, frame), result) in pending.zip(&mut frames.frames).zip(results) {
            std::mem::take(&mut frame.spans).end_atomic(gateway, &result);
            let published = match result {
                Ok(published) => published,
                Err(error) => {
                    let error = ApiError::from(error);
                    gateway.log_error(&error, source);
                    write_api_error(outbound, &error, corr);
                    continue;
                }
            };
            frame.count(gateway, &published);
            if let Some(in_flight) = subscriptions.in_flight_of(frames.member) {
                for &hash in &frame.hashes {
                    in_flight.ack_published(gateway, &self.topic, hash, now);
                }
            }
            if corr.is_some() {
                outbound.frame(|out| {
                    write_ack_published(out, &frame.published_frames(&published), corr)
                });
            }
        }
        Poll::Ready(())
    }
}

impl PendingFrame {
    /// Counts what was stored; a duplicate was stored before.
    fn count(&self, gateway: &Gateway, published: &[Published]) {
        let published = self.topics.iter().zip(published);
        for (topic, _) in published.filter(|(_, published)| !published.duplicate) {
            gateway.metrics.topic(topic).published.increment();
        }
    }

    fn published_frames<'a>(&'a self, published: &'a [Published]) -> Vec<PublishedFrame<'a>> {
        let published = self.topics.iter().zip(published);
        let frames = published.map(|(topic, published)| PublishedFrame {
            topic: Cow::Borrowed(topic),
            id: Cow::Borrowed(published.id.as_str()),
            seq: published.seq,
            duplicate: published.duplicate,
        });
        frames.collect()
    }
}
