//! PUBLISH: consecutive frames, over messages too, become one batch with one answer.

use super::corrs::Corrs;
use super::outbound::Outbound;
use crate::denied::Denied;
use crate::gateway::Gateway;
use crate::said::as_said;
use prombus::error::PublishError;
use prombus::{BatchAnswer, PublishBatch, Published};
use prombus_api::frames::{Publish, write_error, write_published};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most frames that are put into one batch.
pub(super) const MAX_BATCH_FRAMES: usize = 4_096;

/// PUBLISH frames that have not been handed to the bus yet.
#[derive(Debug)]
pub(super) struct Gathered {
    batch: PublishBatch,
    notes: Notes,
}

/// PUBLISH frames that the bus has.
#[derive(Debug)]
pub(super) struct Publishing {
    answer: BatchAnswer,
    notes: Notes,
}

/// What the replies need to know of their frames.
#[derive(Debug, Default)]
struct Notes {
    corrs: Corrs,
    /// Which frames did not get as far as the bus, and why.
    refused: Vec<(usize, Denied)>,
    /// The topics of the others: so many in a row.
    topics: Vec<(Arc<str>, usize)>,
    /// The bytes of all payloads.
    bytes: usize,
}

impl Gathered {
    pub(super) fn new(batch: PublishBatch) -> Self {
        Self {
            batch,
            notes: Notes::default(),
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, topic: &Arc<str>, publish: &Publish<'_>, corr: Option<&str>) {
        self.batch
            .add(topic, publish.payload, &as_said(&publish.options));
        self.notes.corrs.push(corr);
        self.notes.bytes += publish.payload.len();
        match self.notes.topics.last_mut() {
            Some((latest, count)) if Arc::ptr_eq(latest, topic) => *count += 1,
            _ => self.notes.topics.push((topic.clone(), 1)),
        }
    }

    /// Adds a refusal in the place of an event.
    pub(super) fn refuse(&mut self, why: Denied, corr: Option<&str>) {
        self.notes.refused.push((self.len(), why));
        self.notes.corrs.push(corr);
    }

    pub(super) fn len(&self) -> usize {
        self.notes.corrs.len()
    }

    /// Hands the events to the bus.
    pub(super) fn publish(self, gateway: &Gateway) -> Publishing {
        let bus = &gateway.bus;
        Publishing {
            // A client that publishes one at a time waits for each; one that sends more wants to be read from.
            answer: match self.len() {
                1 => bus.publish_batch_here(self.batch),
                _ => bus.publish_batch(self.batch),
            },
            notes: self.notes,
        }
    }
}

impl Publishing {
    /// How many replies it owes.
    pub(super) fn frames(&self) -> usize {
        self.notes.corrs.len()
    }

    /// The bytes that are on their way to the store.
    pub(super) fn bytes(&self) -> usize {
        self.notes.bytes
    }

    /// Writes the replies once the events are stored.
    pub(super) fn poll_replies(
        &mut self,
        context: &mut Context<'_>,
        gateway: &Gateway,
        outbound: &mut Outbound,
    ) -> Poll<()> {
        let Poll::Ready(results) = Pin::new(&mut self.answer).poll(context) else {
            return Poll::Pending;
        };
        self.notes.count(gateway, &results);
        let mut refused = self.notes.refused.drain(..).peekable();
        let mut results = results.into_iter();
        for (at, corr) in self.notes.corrs.iter().enumerate() {
            if let Some((_, why)) = refused.next_if(|(refused_at, _)| *refused_at == at) {
                write_denied(outbound, &why, corr);
                continue;
            }
            match results.next().unwrap_or(Err(PublishError::Closed)) {
                Ok(published) => outbound.frame(|out| {
                    let Published { id, seq, ts, .. } = published;
                    write_published(out, id.as_str(), (seq, ts), published.duplicate, corr);
                }),
                Err(error) => {
                    let why = error.into();
                    gateway.note(&why);
                    write_denied(outbound, &why, corr);
                }
            }
        }
        Poll::Ready(())
    }
}

impl Notes {
    fn count(&self, gateway: &Gateway, results: &[Result<Published, PublishError>]) {
        let mut results = results.iter();
        for (topic, count) in &self.topics {
            let run = results.by_ref().take(*count);
            let stored =
                run.filter(|result| matches!(result, Ok(published) if !published.duplicate));
            match stored.count() {
                0 => {}
                stored => gateway.metrics.topic(topic).published.add(stored as u64),
            }
        }
    }
}

/// Adds an ERR.
pub(super) fn write_denied(outbound: &mut Outbound, why: &Denied, corr: Option<&str>) {
    outbound.frame(|out| write_error(out, why.code, &why.message, corr, why.retry_after_ms));
}
