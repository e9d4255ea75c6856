//! ACK with `publish`: what a client's work came to is published in one step with the end of that work. Consecutive
//! frames of one topic go to the owner of their group together, each as a step of its own.

use super::corrs::Corrs;
use super::outbound::Outbound;
use super::publishing::write_denied;
use super::subscriptions::{Member, Subscriptions};
use crate::denied::Denied;
use crate::gateway::Gateway;
use crate::said::as_said;
use prombus::error::StepError;
use prombus::{PublishBatch, Published, Step, StepsAnswer};
use prombus_api::Code;
use prombus_api::frames::{Ids, Publish, PublishedFrame, write_stepped};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most frames that go to an owner at once.
const MAX_STEPS_TOGETHER: usize = 1_024;

/// Steps that have not been handed to the bus yet.
#[derive(Debug)]
pub(super) struct Steps {
    topic: Arc<str>,
    steps: Vec<Step>,
    notes: Notes,
}

/// Steps that the bus has.
pub(super) struct Stepping {
    answer: Pin<Box<dyn StepsAnswer>>,
    topic: Arc<str>,
    notes: Notes,
    /// What became of them, once that is known.
    results: Option<Vec<Result<Vec<Published>, StepError>>>,
}

/// What the replies need to know of their frames.
#[derive(Debug)]
struct Notes {
    /// The subscription, by its number.
    member: u64,
    corrs: Corrs,
    frames: Vec<Noted>,
    /// The bytes of all payloads.
    bytes: usize,
}

/// What is noted of one frame.
#[derive(Debug)]
struct Noted {
    /// The hashes of the ids.
    hashes: Vec<u64>,
    /// Where its events go, one for each.
    topics: Vec<Arc<str>>,
}

/// What one frame publishes, and where it goes.
pub(super) struct Results {
    batch: PublishBatch,
    topics: Vec<Arc<str>>,
    bytes: usize,
}

impl Results {
    pub(super) fn new(batch: PublishBatch) -> Self {
        Self {
            batch,
            topics: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) fn add(&mut self, topic: Arc<str>, publish: &Publish<'_>) {
        self.batch
            .add(&topic, publish.payload, &as_said(&publish.options));
        self.bytes += publish.payload.len();
        self.topics.push(topic);
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
    pub(super) fn topic_of(&self, ids: &Ids<'_>) -> Result<Arc<str>, Denied> {
        let mut found: Option<&Arc<str>> = None;
        for id in ids.as_slice() {
            let Some(topic) = self.flight.topic_of(self.flight.hash(id)) else {
                let why = format!("{id:?} is not held any more; name it by the topic it came from");
                return Err(Denied::new(Code::UnknownId, why));
            };
            if found.is_some_and(|found| found != topic) {
                let why = "ids: they are of several topics, and a step is of one";
                return Err(Denied::new(Code::BadFrame, why));
            }
            found = Some(topic);
        }
        let none = || Denied::new(Code::BadFrame, "ids: there has to be one at least");
        found.cloned().ok_or_else(none)
    }
}

impl Steps {
    pub(super) fn new(member: &Member, topic: Arc<str>) -> Self {
        Self {
            topic,
            steps: Vec::new(),
            notes: Notes {
                member: member.number,
                corrs: Corrs::default(),
                frames: Vec::new(),
                bytes: 0,
            },
        }
    }

    /// Whether steps of this topic through this subscription can go along.
    pub(super) fn fits(&self, member: &Member, topic: &str) -> bool {
        self.notes.member == member.number
            && *self.topic == *topic
            && self.steps.len() < MAX_STEPS_TOGETHER
    }

    pub(super) fn add(
        &mut self,
        member: &Member,
        ids: &Ids<'_>,
        results: Results,
        corr: Option<&str>,
    ) {
        let ids = ids.as_slice();
        self.steps.push(Step {
            ids: ids.iter().map(|id| (**id).to_owned()).collect(),
            batch: results.batch,
        });
        self.notes.bytes += results.bytes;
        self.notes.corrs.push(corr);
        self.notes.frames.push(Noted {
            hashes: ids.iter().map(|id| member.flight.hash(id)).collect(),
            topics: results.topics,
        });
    }

    pub(super) fn member(&self) -> u64 {
        self.notes.member
    }

    /// Hands them to the bus, through the subscription that they are of.
    pub(super) fn begin(self, member: &Member) -> Stepping {
        let answer = member.control.ack_ids_and_publish(&self.topic, self.steps);
        Stepping {
            answer: Box::pin(answer),
            topic: self.topic,
            notes: self.notes,
            results: None,
        }
    }
}

impl Stepping {
    /// How many frames it may owe a reply.
    pub(super) fn frames(&self) -> usize {
        self.notes.frames.len()
    }

    /// The bytes that are on their way to the store.
    pub(super) fn bytes(&self) -> usize {
        self.notes.bytes
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

    /// Writes the replies to the frames, and counts what became of the events.
    pub(super) fn reply(
        self,
        gateway: &Gateway,
        subscriptions: &mut Subscriptions,
        outbound: &mut Outbound,
    ) {
        let Self { notes, topic, .. } = self;
        let now_ms = gateway.now_ms();
        let results = self.results.unwrap_or_default().into_iter();
        let frames = notes.corrs.iter().zip(notes.frames.iter());
        for ((corr, noted), result) in frames.zip(results) {
            let published = match result {
                Ok(published) => published,
                Err(error) => {
                    let why = Denied::from(error);
                    gateway.note(&why);
                    write_denied(outbound, &why, corr);
                    continue;
                }
            };
            noted.count(gateway, &published);
            if let Some(flight) = subscriptions.flight_of(notes.member) {
                for &hash in &noted.hashes {
                    flight.stepped(gateway, &topic, hash, now_ms);
                }
            }
            if corr.is_some() {
                outbound.frame(|out| write_stepped(out, &noted.told(&published), corr));
            }
        }
    }
}

impl Noted {
    /// Counts what was stored; a duplicate was stored before.
    fn count(&self, gateway: &Gateway, published: &[Published]) {
        let published = self.topics.iter().zip(published);
        for (topic, _) in published.filter(|(_, published)| !published.duplicate) {
            gateway.metrics.topic(topic).published.increment();
        }
    }

    fn told<'a>(&'a self, published: &'a [Published]) -> Vec<PublishedFrame<'a>> {
        let published = self.topics.iter().zip(published);
        let told = published.map(|(topic, published)| PublishedFrame {
            topic: Cow::Borrowed(topic),
            id: Cow::Borrowed(published.id.as_str()),
            seq: published.seq,
            duplicate: published.duplicate,
        });
        told.collect()
    }
}
