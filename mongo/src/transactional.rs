//! A handler that gets the session of an open transaction: what it writes, in as many collections as it likes, and the
//! position commit together or not at all. Killed at any point, the collections equal a fold over the log.

use crate::error::{MongoError, ProjectError};
use crate::positions::Positions;
use crate::server::require_replication;
use mongodb::options::ReadConcern;
use mongodb::{ClientSession, Database};
use prombus::ReadLimit;
use prombus_connect::{
    Applied, Attempts, Event, Position, PositionOwner, Projection, TransactionPlan,
    TransactionalOptions, handler_panicked,
};
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// Handles events one after the other, inside a transaction.
pub trait Handler: Send + 'static {
    /// Writes what follows from an event, through the session. It must not end the transaction.
    fn handle(
        &mut self,
        session: &mut ClientSession,
        event: &Event,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;
}

/// Why a handler failed.
#[derive(Debug, Clone)]
pub enum HandlerError {
    /// MongoDB did not do something; where that passes, it is no fault of the event.
    Mongo(MongoError),
    /// Something else.
    Other(String),
}

/// A handler with its position.
///
/// A batch of events is one transaction. Where the handler fails or panics at one of them, everything is rolled back,
/// the events before it are handled again and committed, and the failed one is tried again after a backoff. So a handler
/// may be called again for an event, but what it wrote before is gone then. After
/// [`TransactionalOptions::max_attempts`] the projector stops with the error; the position stays before the event.
pub struct Transactional<H> {
    database: Database,
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
    /// Another process runs the same projector; this one goes on from where that one is.
    Overtaken,
    /// The handler failed at the event of this place, and all is rolled back.
    Failed(usize, String),
}

impl<H: Handler> Transactional<H> {
    /// Goes on from the position of this name, or from the beginning of the topic. Needs a server with transactions.
    pub async fn open(
        database: &Database,
        topic: &str,
        options: TransactionalOptions,
        handler: H,
    ) -> Result<Self, ProjectError> {
        let owner = options.owner(topic)?;
        require_replication(database, "transactions").await?;
        let positions = Positions::new(database, &owner);
        let position = match positions.load().await? {
            None => positions.begin().await?,
            Some(stored) => owner.checked(stored)?,
        };
        Ok(Self {
            database: database.clone(),
            owner,
            position,
            options,
            handler,
            attempts: Attempts::default(),
        })
    }

    /// Handles all of these in one transaction, or none.
    async fn handle(&mut self, events: &[Event], last: &Event) -> Result<Outcome, MongoError> {
        let to = Position::of(last);
        let mut session = self.database.client().start_session().await?;
        let begin = session.start_transaction();
        begin.read_concern(ReadConcern::snapshot()).await?;
        let positions = Positions::new(&self.database, &self.owner);
        let advanced = positions.advance(&self.position, &to, Some(&mut session));
        if !advanced.await? {
            let _ = session.abort_transaction().await;
            return Ok(Outcome::Overtaken);
        }
        for (at, event) in events.iter().enumerate() {
            let why = match call(&mut self.handler, &mut session, event).await {
                Ok(()) => continue,
                Err(HandlerError::Mongo(error)) if error.is_transient() => return Err(error),
                Err(HandlerError::Mongo(error)) => error.to_string(),
                Err(HandlerError::Other(why)) => why,
            };
            // The server also ends it by itself.
            let _ = session.abort_transaction().await;
            return Ok(Outcome::Failed(at, why));
        }
        // Where the outcome is unknown, the next attempt finds the position moved, or not.
        session.commit_transaction().await?;
        self.position = to;
        Ok(Outcome::Done)
    }

    /// Takes events, all behind the position and in order.
    async fn apply(&mut self, events: &[Event]) -> Result<Applied, ProjectError> {
        let mut plan = TransactionPlan::new(events, &self.attempts);
        while let Some((batch, last)) = plan.batch() {
            match self.handle(batch, last).await? {
                Outcome::Done => break,
                Outcome::Overtaken => {
                    let positions = Positions::new(&self.database, &self.owner);
                    self.position = positions.load().await?.unwrap_or_default().0;
                    return Ok(Applied::default());
                }
                Outcome::Failed(at, why) => plan.failed_at(at, why),
            }
        }
        Ok(plan.finish(&mut self.attempts, &self.options)?)
    }
}

impl<H: Handler> Projection for Transactional<H> {
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
        tokio::spawn(async move { this.lock().await.apply(&events).await })
    }
}

/// Calls the handler; a panic is an error with its text.
async fn call<H: Handler>(
    handler: &mut H,
    session: &mut ClientSession,
    event: &Event,
) -> Result<(), HandlerError> {
    let mut handling = pin!(handler.handle(session, event));
    let handled = poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(context)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(handled)) => Poll::Ready(handled),
            Err(panic) => Poll::Ready(Err(HandlerError::Other(handler_panicked(&*panic)))),
        }
    });
    handled.await
}

impl From<mongodb::error::Error> for HandlerError {
    fn from(error: mongodb::error::Error) -> Self {
        Self::Mongo(error.into())
    }
}

impl From<MongoError> for HandlerError {
    fn from(error: MongoError) -> Self {
        Self::Mongo(error)
    }
}

impl From<String> for HandlerError {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl From<&str> for HandlerError {
    fn from(why: &str) -> Self {
        Self::Other(why.to_owned())
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
