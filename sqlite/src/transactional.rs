//! A handler that gets the open transaction: what it writes, in as many tables as it likes, and the position commit
//! together or not at all. Killed at any point, the tables equal a fold over the log.

#[cfg(test)]
mod tests;

use crate::error::{HandlerFailed, ProjectError, SqliteError};
use crate::positions::{self, Positions};
use prombus::ReadLimit;
use prombus_connect::{
    Applied, Attempts, Event, Position, PositionOwner, Projection, TransactionPlan,
    TransactionalOptions, handler_panicked,
};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

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
        let owner = options.owner(topic)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        positions::init(&transaction)?;
        let position = match owner.load(&transaction)? {
            None => Position::default(),
            Some(stored) => owner.checked(stored)?,
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
    fn handle(&mut self, events: &[Event], last: &Event) -> Result<Outcome, ProjectError> {
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
                // What was written is committed without its position, or lost, and cannot be undone.
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
        let mut plan = TransactionPlan::new(events, &self.attempts);
        while let Some((batch, last)) = plan.batch() {
            match self.handle(batch, last)? {
                Outcome::Done => break,
                Outcome::Overtaken => return Ok(Applied::default()),
                Outcome::Failed(at, why) => plan.failed_at(at, why),
                Outcome::NotCommitted(SqliteError::Locked) => {
                    return Err(SqliteError::Locked.into());
                }
                Outcome::NotCommitted(error) => plan.not_committed(error.to_string()),
            }
        }
        Ok(plan.finish(&mut self.attempts, &self.options)?)
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
        Err(panic) => Err(handler_panicked(&*panic)),
    }
}

impl<H> fmt::Debug for Transactional<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactional")
            .field("owner", &self.owner)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
