//! A handler that gets the open transaction: what it writes, in as many tables as it likes, and the position commit
//! together or not at all. Killed at any point, the tables equal a fold over the log.

#[cfg(test)]
mod tests;

use crate::error::{HandlerFailed, OtherDefinition, ProjectError, SqliteError};
use crate::positions::{self, Positions};
use prombus::{Backoff, ReadLimit};
use prombus_connect::{
    Applied, Attempts, BATCH, Event, Position, PositionOwner, Projection, check_name,
};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

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
    /// How many events at most go into one transaction.
    pub batch: ReadLimit,
}

/// A handler with its position.
///
/// A batch of events is one transaction. Where the handler fails or panics at one of them, everything is rolled back,
/// the events before it are handled again and committed, and the failed one is tried again after a backoff. So a
/// handler may be called again for an event, but what it wrote before is gone then. After
/// [`TransactionalOptions::max_attempts`] the projector stops with the error; the position stays before the event.
pub struct Transactional<H> {
    connection: Connection,
    owner: PositionOwner,
    position: Position,
    options: TransactionalOptions,
    handler: H,
    attempts: Attempts,
}

/// What became of a batch.
enum Outcome {
    /// All of it is committed.
    Done,
    /// Another program runs the same projector on this file; it goes on from where that one is.
    Overtaken,
    /// The handler failed at the event of this place, and all is rolled back.
    Failed(usize, String),
    /// All is rolled back, because of a deferred constraint or of SQLite itself.
    NotCommitted(SqliteError),
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
}

impl<H, E> Transactional<H>
where
    H: FnMut(&Transaction<'_>, &Event) -> Result<(), E> + Send + 'static,
    E: fmt::Display,
{
    /// Goes on from the position of this name, or from the beginning of the topic. The handler must not end the
    /// transaction.
    pub fn open(
        mut connection: Connection,
        topic: &str,
        options: TransactionalOptions,
        handler: H,
    ) -> Result<Self, ProjectError> {
        check_name(&options.name)?;
        let owner = PositionOwner {
            projector: options.name.clone(),
            topic: topic.to_owned(),
            definition: DEFINITION.to_owned(),
        };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        positions::init(&transaction)?;
        let position = match owner.load(&transaction)? {
            None => Position::default(),
            Some((position, was)) if was == owner.definition => position,
            Some((_, was)) => {
                let projector = owner.projector;
                return Err(OtherDefinition { projector, was }.into());
            }
        };
        transaction.commit()?;
        Ok(Self {
            connection,
            owner,
            position,
            options,
            handler,
            attempts: Attempts::default(),
        })
    }

    /// The connection, for reading what is there.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Handles all of these in one transaction, or none.
    fn handle(&mut self, events: &[Event]) -> Result<Outcome, ProjectError> {
        let Some(last) = events.last() else {
            return Ok(Outcome::Done);
        };
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let found = self.owner.load(&transaction)?.unwrap_or_default().0;
        if found != self.position {
            self.position = found;
            return Ok(Outcome::Overtaken);
        }
        for (at, event) in events.iter().enumerate() {
            if let Err(why) = call(&mut self.handler, &transaction, event) {
                return Ok(Outcome::Failed(at, why));
            }
            if transaction.is_autocommit() {
                // What was written is committed without its position, or lost: nobody can make that good.
                return Err(HandlerFailed {
                    seq: event.seq(),
                    id: event.id().into_owned(),
                    attempts: 1,
                    why: "it ended the transaction, which is not its own".to_owned(),
                }
                .into());
            }
        }
        let position = Position::of(last);
        self.owner.save(&transaction, &position)?;
        if let Err(error) = transaction.commit() {
            return Ok(Outcome::NotCommitted(error.into()));
        }
        self.position = position;
        Ok(Outcome::Done)
    }

    /// Takes events, all behind the position and in order. Blocks while SQLite works.
    fn apply(&mut self, events: &[Event]) -> Result<Applied, ProjectError> {
        let mut take = events.len();
        let mut failed = None;
        let first_seq = events.first().map(Event::seq);
        let failed_seq = self.attempts.failed_seq();
        if failed_seq.is_some() && first_seq <= failed_seq {
            // Up to the one that failed each is committed by itself, so that a success counts at once.
            take = take.min(1);
        }
        // Each round takes fewer events, so this ends.
        while take > 0 {
            match self.handle(&events[..take])? {
                Outcome::Done => break,
                Outcome::Overtaken => return Ok(Applied::default()),
                Outcome::Failed(at, why) => {
                    failed = Some((at, why));
                    take = at;
                }
                Outcome::NotCommitted(SqliteError::Locked) => {
                    return Err(SqliteError::Locked.into());
                }
                Outcome::NotCommitted(error) if take == 1 => {
                    failed = Some((0, error.to_string()));
                    take = 0;
                }
                // Nobody knows which event it was until one is alone.
                Outcome::NotCommitted(_) => {
                    failed = None;
                    take /= 2;
                }
            }
        }
        let mut applied = Applied {
            events: take as u64,
            ..Applied::default()
        };
        if let Some((at, why)) = failed {
            let (max_attempts, backoff) = (self.options.max_attempts, &self.options.backoff);
            let wait_ms = self
                .attempts
                .fail(&events[at], why, max_attempts, backoff)?;
            applied.retry_after_ms = Some(wait_ms);
        }
        Ok(applied)
    }
}

impl<H, E> Projection for Transactional<H>
where
    H: FnMut(&Transaction<'_>, &Event) -> Result<(), E> + Send + 'static,
    E: fmt::Display + 'static,
{
    type Error = ProjectError;

    fn topic(&self) -> &str {
        &self.owner.topic
    }

    fn position(&self) -> &Position {
        &self.position
    }

    fn batch(&self) -> ReadLimit {
        self.options.batch
    }

    fn start(
        this: Arc<Mutex<Self>>,
        events: Vec<Event>,
    ) -> JoinHandle<Result<Applied, ProjectError>> {
        tokio::task::spawn_blocking(move || this.blocking_lock().apply(&events))
    }
}

/// Calls the handler; a panic is an error with its text.
fn call<H, E>(handler: &mut H, transaction: &Transaction<'_>, event: &Event) -> Result<(), String>
where
    H: FnMut(&Transaction<'_>, &Event) -> Result<(), E>,
    E: fmt::Display,
{
    match catch_unwind(AssertUnwindSafe(|| handler(transaction, event))) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(format!("the handler panicked: {}", panic_text(&*panic))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a text")
}

impl<H> fmt::Debug for Transactional<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactional")
            .field("owner", &self.owner)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
