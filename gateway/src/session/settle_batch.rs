//! Batches of ACK frames, and ACK, NACK and MODACK frames that wait for their results. Consecutive acknowledgements of
//! one topic share a batch, across frames and messages.

use super::correlation_ids::CorrelationIds;
use super::outbound::Outbound;
use super::publish_batch::write_api_error;
use super::settle::{SettleFuture, SettleOp, settle, settle_by_topic};
use super::subscriptions::{Member, Subscriptions};
use crate::api_error::ApiError;
use crate::in_flight::{Now, Outcome};
use prombus::error::SettleError;
use prombus_api::frames::{Ids, write_ok};
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most ids of one batch.
const MAX_BATCH_IDS: usize = 4_096;

/// Acknowledgements that were not sent to the bus yet.
#[derive(Debug)]
pub(super) struct AckBatch {
    topic: Arc<str>,
    ids: Vec<String>,
    frames: PendingFrames,
}

/// Frames that were sent to the bus.
pub(super) struct PendingSettle {
    future: SettleFuture,
    outcome: Outcome,
    frames: PendingFrames,
    /// The results, once they are known.
    results: Option<Vec<Result<(), SettleError>>>,
}

/// Frames that wait for their replies.
#[derive(Debug)]
struct PendingFrames {
    /// Number of the subscription.
    member: u64,
    /// The hashes of all ids, frame by frame.
    hashes: Vec<u64>,
    correlation_ids: CorrelationIds,
    /// How many ids each frame has.
    counts: Vec<usize>,
}

impl AckBatch {
    pub(super) fn new(member: &Member, topic: Arc<str>) -> Self {
        Self {
            topic,
            ids: Vec::new(),
            frames: PendingFrames::new(member),
        }
    }

    /// Whether acknowledgements of this topic through this subscription fit into the batch.
    pub(super) fn fits(&self, member: &Member, topic: &str) -> bool {
        self.frames.member == member.number
            && *self.topic == *topic
            && self.ids.len() < MAX_BATCH_IDS
    }

    pub(super) fn add(&mut self, member: &Member, ids: &Ids<'_>, corr: Option<&str>) {
        self.frames.add(member, ids, corr);
        self.ids.extend(owned(ids));
    }

    pub(super) fn member(&self) -> u64 {
        self.frames.member
    }

    /// Sends them to the bus.
    pub(super) fn settle(self, member: &Member) -> PendingSettle {
        let future = settle(&member.control, &self.topic, self.ids, &SettleOp::Ack);
        PendingSettle::new(future, Outcome::Acked, self.frames)
    }
}

impl PendingSettle {
    /// Settles events of one topic, or without one those of any topic that the subscription is served from.
    pub(super) fn of_frame(
        member: &Member,
        topic: Option<&str>,
        ids: &Ids<'_>,
        op: SettleOp,
        corr: Option<&str>,
    ) -> Self {
        let outcome = match op {
            SettleOp::Ack => Outcome::Acked,
            SettleOp::Nack { .. } => Outcome::Nacked,
            SettleOp::Extend { extend_ms } => Outcome::Extended { extend_ms },
        };
        let mut frames = PendingFrames::new(member);
        frames.add(member, ids, corr);
        let future = match topic {
            Some(topic) => settle(&member.control, topic, owned(ids).collect(), &op),
            None => {
                let topics = frames
                    .hashes
                    .iter()
                    .map(|&hash| member.in_flight.topic_of(hash));
                let events = topics.map(Option::<&Arc<str>>::cloned).zip(owned(ids));
                settle_by_topic(member.control.clone(), events.collect(), op)
            }
        };
        Self::new(future, outcome, frames)
    }

    fn new(future: SettleFuture, outcome: Outcome, frames: PendingFrames) -> Self {
        Self {
            future,
            outcome,
            frames,
            results: None,
        }
    }

    /// How many frames wait for a reply.
    pub(super) fn frames(&self) -> usize {
        self.frames.counts.len()
    }

    /// Polls for the results.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.results.is_none()
            && let Poll::Ready(results) = self.future.as_mut().poll(context)
        {
            self.results = Some(results);
        }
        match &self.results {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    }

    /// Writes the replies, and updates the table of events in flight.
    pub(super) fn reply(
        self,
        subscriptions: &mut Subscriptions,
        outbound: &mut Outbound,
        now: Now,
    ) {
        let Self {
            frames, outcome, ..
        } = self;
        let results = self.results.unwrap_or_default();
        if let Some(in_flight) = subscriptions.in_flight_of(frames.member) {
            let settled = frames.hashes.iter().zip(&results);
            for (&hash, _) in settled.filter(|(_, result)| result.is_ok()) {
                in_flight.settle(hash, outcome, now);
            }
        }
        let mut results = results.as_slice();
        for (corr, &count) in frames.correlation_ids.iter().zip(&frames.counts) {
            let (own, rest) = results.split_at(count.min(results.len()));
            results = rest;
            match own.iter().find_map(|result| result.as_ref().err()) {
                Some(error) => write_api_error(outbound, &settle_error(error, own), corr),
                None if corr.is_some() => outbound.frame(|out| write_ok(out, corr)),
                None => {}
            }
        }
    }
}

impl PendingFrames {
    fn new(member: &Member) -> Self {
        Self {
            member: member.number,
            hashes: Vec::new(),
            correlation_ids: CorrelationIds::default(),
            counts: Vec::new(),
        }
    }

    fn add(&mut self, member: &Member, ids: &Ids<'_>, corr: Option<&str>) {
        let ids = ids.as_slice();
        let hashes = ids.iter().map(|id| member.in_flight.hash(id));
        self.hashes.extend(hashes);
        self.counts.push(ids.len());
        self.correlation_ids.push(corr);
    }
}

/// One ERR for each frame, also where several of its ids failed.
fn settle_error(first: &SettleError, all: &[Result<(), SettleError>]) -> ApiError {
    let mut error = ApiError::from(first.clone());
    let failed = all.iter().filter(|result| result.is_err()).count();
    if all.len() > 1 {
        error.message = format!("{failed} of {} ids failed: {}", all.len(), error.message);
    }
    error
}

fn owned<'a>(ids: &'a Ids<'_>) -> impl Iterator<Item = String> + 'a {
    ids.as_slice().iter().map(|id| (**id).to_owned())
}
