//! ACK, NACK and MODACK on their way to the owners of groups. Consecutive acknowledgements of one topic go together,
//! over frames and messages.

use super::asking::{Asked, What, ask, ask_scattered};
use super::corrs::Corrs;
use super::flight::Outcome;
use super::outbound::Outbound;
use super::publishing::write_denied;
use super::subscriptions::{Member, Subscriptions};
use crate::denied::Denied;
use prombus::error::SettleError;
use prombus_api::frames::{Ids, write_ok};
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most ids that go to an owner at once.
const MAX_IDS_TOGETHER: usize = 4_096;

/// What an extension gives at least.
const MIN_EXTEND_MS: u64 = 1_000;

/// Acknowledgements that have not been handed to the bus yet.
#[derive(Debug)]
pub(super) struct Acks {
    topic: Arc<str>,
    ids: Vec<String>,
    notes: Notes,
}

/// Settlements that the bus has.
pub(super) struct Settling {
    answer: Asked,
    outcome: Outcome,
    notes: Notes,
    /// What became of them, once that is known.
    results: Option<Vec<Result<(), SettleError>>>,
}

/// What the replies need to know of their frames.
#[derive(Debug)]
struct Notes {
    /// The subscription, by its number.
    member: u64,
    /// The hashes of all ids, frame by frame.
    hashes: Vec<u64>,
    corrs: Corrs,
    /// How many ids each frame has.
    counts: Vec<usize>,
}

impl Acks {
    pub(super) fn new(member: &Member, topic: Arc<str>) -> Self {
        Self {
            topic,
            ids: Vec::new(),
            notes: Notes::new(member),
        }
    }

    /// Whether acknowledgements of this topic through this subscription can go along.
    pub(super) fn fits(&self, member: &Member, topic: &str) -> bool {
        self.notes.member == member.number
            && *self.topic == *topic
            && self.ids.len() < MAX_IDS_TOGETHER
    }

    pub(super) fn add(&mut self, member: &Member, ids: &Ids<'_>, corr: Option<&str>) {
        self.notes.add(member, ids, corr);
        self.ids.extend(owned(ids));
    }

    pub(super) fn member(&self) -> u64 {
        self.notes.member
    }

    /// Hands them to the bus, through the subscription that they are of.
    pub(super) fn settle(self, member: &Member) -> Settling {
        let answer = ask(&member.control, &self.topic, self.ids, &What::Ack);
        Settling::new(answer, Outcome::Acked, self.notes)
    }
}

impl Settling {
    /// Settles events of one topic, or without one those of any topic that the subscription is served from.
    pub(super) fn of_frame(
        member: &Member,
        topic: Option<&str>,
        ids: &Ids<'_>,
        what: What,
        corr: Option<&str>,
    ) -> Self {
        let outcome = match what {
            What::Ack => Outcome::Acked,
            What::Nack { .. } => Outcome::Nacked,
            What::Extend { extend_ms } => Outcome::Extended {
                extend_ms: extend_ms.map(|ms| ms.max(MIN_EXTEND_MS)),
            },
        };
        let mut notes = Notes::new(member);
        notes.add(member, ids, corr);
        let answer = match topic {
            Some(topic) => ask(&member.control, topic, owned(ids).collect(), &what),
            None => {
                let topics = notes
                    .hashes
                    .iter()
                    .map(|&hash| member.flight.topic_of(hash));
                let events = topics.map(Option::<&Arc<str>>::cloned).zip(owned(ids));
                ask_scattered(member.control.clone(), events.collect(), what)
            }
        };
        Self::new(answer, outcome, notes)
    }

    fn new(answer: Asked, outcome: Outcome, notes: Notes) -> Self {
        Self {
            answer,
            outcome,
            notes,
            results: None,
        }
    }

    /// How many frames it may owe a reply.
    pub(super) fn frames(&self) -> usize {
        self.notes.counts.len()
    }

    /// Sends it off, and sees whether it is done.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.results.is_none()
            && let Poll::Ready(results) = self.answer.as_mut().poll(context)
        {
            self.results = Some(results);
        }
        match &self.results {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    }

    /// Writes the replies to the frames, and notes what became of the events.
    pub(super) fn reply(
        self,
        subscriptions: &mut Subscriptions,
        outbound: &mut Outbound,
        now_ms: u64,
    ) {
        let Self { notes, outcome, .. } = self;
        let results = self.results.unwrap_or_default();
        if let Some(flight) = subscriptions.flight_of(notes.member) {
            let settled = notes.hashes.iter().zip(&results);
            for (&hash, _) in settled.filter(|(_, result)| result.is_ok()) {
                flight.settle(hash, outcome, now_ms);
            }
        }
        let mut results = results.as_slice();
        for (corr, &count) in notes.corrs.iter().zip(&notes.counts) {
            let (own, rest) = results.split_at(count.min(results.len()));
            results = rest;
            match own.iter().find_map(|result| result.as_ref().err()) {
                Some(error) => write_denied(outbound, &refusal(error, own), corr),
                None if corr.is_some() => outbound.frame(|out| write_ok(out, corr)),
                None => {}
            }
        }
    }
}

impl Notes {
    fn new(member: &Member) -> Self {
        Self {
            member: member.number,
            hashes: Vec::new(),
            corrs: Corrs::default(),
            counts: Vec::new(),
        }
    }

    fn add(&mut self, member: &Member, ids: &Ids<'_>, corr: Option<&str>) {
        let ids = ids.as_slice();
        let hashes = ids.iter().map(|id| member.flight.hash(id));
        self.hashes.extend(hashes);
        self.counts.push(ids.len());
        self.corrs.push(corr);
    }
}

/// One ERR for a frame, also where several of its ids failed.
fn refusal(first: &SettleError, all: &[Result<(), SettleError>]) -> Denied {
    let mut denied = Denied::from(first.clone());
    let failed = all.iter().filter(|result| result.is_err()).count();
    if all.len() > 1 {
        denied.message = format!("{failed} of {} ids failed: {}", all.len(), denied.message);
    }
    denied
}

fn owned<'a>(ids: &'a Ids<'_>) -> impl Iterator<Item = String> + 'a {
    ids.as_slice().iter().map(|id| (**id).to_owned())
}
