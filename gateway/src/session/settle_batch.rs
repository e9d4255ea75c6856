//! Batches of ACK frames, and ACK, NACK and MODACK frames that wait for their results. Consecutive acknowledgements of
//! one topic share a batch, across frames and messages.

use super::correlation_ids::CorrelationIds;
use super::outbound::Outbound;
use super::publish_batch::write_api_error;
use super::settle::{Settling, settle_by_topic};
use super::subscriptions::{Member, Subscriptions};
use crate::api_error::ApiError;
use crate::gateway::Gateway;
use prombus::SettleOp;
use prombus::error::SettleError;
use prombus_api::frames::{Ids, write_ok};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

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
    settling: Settling,
    op: SettleOp,
    frames: PendingFrames,
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
        let op = SettleOp::Ack;
        let settling = member.control.settle_ids(&self.topic, self.ids, op.clone());
        PendingSettle {
            settling: Settling::OneTopic(settling),
            op,
            frames: self.frames,
        }
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
        let mut frames = PendingFrames::new(member);
        frames.add(member, ids, corr);
        let settling = match topic {
            Some(topic) => {
                let ids = owned(ids).collect();
                Settling::OneTopic(member.control.settle_ids(topic, ids, op.clone()))
            }
            None => {
                let topics = frames
                    .hashes
                    .iter()
                    .map(|&hash| member.in_flight.topic_of(hash));
                let events = topics.map(Option::<&Arc<str>>::cloned).zip(owned(ids));
                settle_by_topic(member.control.clone(), events.collect(), op.clone())
            }
        };
        Self {
            settling,
            op,
            frames,
        }
    }

    /// How many frames wait for a reply.
    pub(super) fn frames(&self) -> usize {
        self.frames.counts.len()
    }

    /// Writes the replies once the results are known, and updates the table of events in flight.
    pub(super) fn poll_replies(
        &mut self,
        context: &mut Context<'_>,
        gateway: &Gateway,
        subscriptions: &mut Subscriptions,
        outbound: &mut Outbound,
    ) -> Poll<()> {
        let results = ready!(self.settling.poll(context));
        let (frames, now) = (&self.frames, gateway.now());
        if let Some(in_flight) = subscriptions.in_flight_of(frames.member) {
            let settled = frames.hashes.iter().zip(&results);
            for (&hash, _) in settled.filter(|(_, result)| result.is_ok()) {
                in_flight.settle(hash, &self.op, now);
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
        Poll::Ready(())
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
