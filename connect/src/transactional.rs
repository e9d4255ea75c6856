//! Handlers that run inside a transaction: their options, the position they go on from, and which events of a page go
//! into the next transaction after one failed. A connector opens and commits the transactions.

use crate::error::{BadName, HandlerFailed, OtherDefinition};
use crate::event::Event;
use crate::names::check_name;
use crate::position::{Position, PositionOwner};
use crate::projection::{Applied, Attempts, BATCH};
use prombus::{Backoff, ReadLimit};
use std::any::Any;

/// What the position says of a handler, for its code cannot be compared.
const DEFINITION: &str = "handler";

/// How a handler is run.
#[derive(Debug, Clone)]
pub struct TransactionalOptions {
    /// The name that the position is kept under.
    pub name: String,
    /// How often an event is tried before the projector stops with the handler's error.
    pub max_attempts: u32,
    /// How long a failed event waits for its next attempt.
    pub backoff: Backoff,
    /// How many events at most go into one transaction. MongoDB ends transactions after a minute.
    pub batch: ReadLimit,
}

impl TransactionalOptions {
    /// The defaults, under this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            max_attempts: 5,
            backoff: Backoff::default(),
            batch: BATCH,
        }
    }

    /// The owner of the position in a topic.
    pub fn owner(&self, topic: &str) -> Result<PositionOwner, BadName> {
        check_name(&self.name)?;
        Ok(PositionOwner {
            projector: self.name.clone(),
            topic: topic.to_owned(),
            definition: DEFINITION.to_owned(),
        })
    }
}

impl PositionOwner {
    /// The stored position, unless something else is kept under the name.
    pub fn checked(
        &self,
        (position, was): (Position, String),
    ) -> Result<Position, OtherDefinition> {
        if was == self.definition {
            return Ok(position);
        }
        let projector = self.projector.clone();
        Err(OtherDefinition { projector, was })
    }
}

/// A page of events on its way into transactions. A batch of events is one transaction; where the handler fails at one of
/// them everything is rolled back, and the events before it are handled again and committed.
#[derive(Debug)]
pub struct TransactionPlan<'a> {
    events: &'a [Event],
    take: usize,
    failed: Option<(usize, String)>,
}

impl<'a> TransactionPlan<'a> {
    /// Begins with all events, or up to one that failed before with each by itself, so that a success counts at once.
    pub fn new(events: &'a [Event], attempts: &Attempts) -> Self {
        let (first_seq, failed_seq) = (events.first().map(Event::seq), attempts.failed_seq());
        let is_careful = failed_seq.is_some() && first_seq <= failed_seq;
        let take = if is_careful { 1 } else { events.len() };
        Self {
            events,
            take: take.min(events.len()),
            failed: None,
        }
    }

    /// The events of the next transaction and the last of them; `None` where none is left to try. Each failure leaves
    /// fewer events, so this ends.
    pub fn batch(&self) -> Option<(&'a [Event], &'a Event)> {
        let batch = &self.events[..self.take];
        Some((batch, batch.last()?))
    }

    /// The handler failed at the event of this place in the batch, and all is rolled back.
    pub fn failed_at(&mut self, at: usize, why: String) {
        self.failed = Some((at, why));
        self.take = at;
    }

    /// The transaction was not committed, and it is not known because of which event until one is alone.
    pub fn not_committed(&mut self, why: String) {
        if self.take == 1 {
            return self.failed_at(0, why);
        }
        self.failed = None;
        self.take /= 2;
    }

    /// Counts what is committed, and the failure of the event behind it.
    pub fn finish(
        self,
        attempts: &mut Attempts,
        options: &TransactionalOptions,
    ) -> Result<Applied, HandlerFailed> {
        let mut applied = Applied {
            events: self.take as u64,
            ..Applied::default()
        };
        if let Some((at, why)) = self.failed {
            let (max_attempts, backoff) = (options.max_attempts, &options.backoff);
            let wait_ms = attempts.fail(&self.events[at], why, max_attempts, backoff)?;
            applied.retry_after_ms = Some(wait_ms);
        }
        Ok(applied)
    }
}

/// Why a handler failed that panicked.
pub fn handler_panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text");
    format!("the handler panicked: {text}")
}
