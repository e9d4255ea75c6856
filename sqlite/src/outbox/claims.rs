//! The rows that a worker holds: claiming them with a lease, and saying what became of them. Everything here is one
//! transaction each, and takes the time as an argument.

use super::row::{self, COLUMNS, OutboxRow};
use super::{Outbox, OutboxCounts};
use crate::database::signed;
use crate::error::OutboxError;
use prombus::Backoff;
use prombus::LockExt;
use prombus_connect::TaskLost;
use prombus_connect::outbox::{ClaimStore, Claimed, PublishFailure, SentAt, Settled};
use rusqlite::{Connection, TransactionBehavior, params};
use std::sync::{Arc, Mutex};

/// Whether a worker did not come back.
const ANY_EXPIRED: &str = "SELECT EXISTS
    (SELECT 1 FROM prombus_outbox WHERE state = 'claimed' AND lease_until_ms <= ?1)";

/// Rows whose worker did not come back are anybody's again.
const REQUEUE: &str = "UPDATE prombus_outbox
    SET state = 'pending', worker = NULL, lease_until_ms = NULL, due_ms = ?1,
        error = 'the lease of ' || worker || ' ran out'
    WHERE state = 'claimed' AND lease_until_ms <= ?1";

/// What is due at `?1`. A row with a key waits for the earlier rows of its topic and key: one that is held, or that
/// waits for its next attempt, holds back those behind it. Both are few, and have an index each.
macro_rules! is_due {
    () => {
        "mine.state = 'pending' AND mine.due_ms <= ?1 AND (mine.key IS NULL OR NOT EXISTS (
            SELECT 1 FROM prombus_outbox AS held WHERE held.topic = mine.topic AND held.key = mine.key
                AND held.seq < mine.seq AND held.key IS NOT NULL AND held.state = 'claimed'
        ) AND NOT EXISTS (
            SELECT 1 FROM prombus_outbox AS waiting WHERE waiting.topic = mine.topic
                AND waiting.key = mine.key AND waiting.seq < mine.seq AND waiting.key IS NOT NULL
                AND waiting.state = 'pending' AND waiting.due_ms > 0 AND waiting.due_ms > ?1))"
    };
}

/// What may be claimed, in the order of the rows, up to a number of rows and of bytes, as a JSON array. Looking for it
/// blocks no writer.
const CANDIDATES: &str = concat!(
    "WITH due AS (SELECT seq, octet_length(payload) AS bytes FROM prombus_outbox AS mine WHERE ",
    is_due!(),
    " ORDER BY seq LIMIT ?2),
    summed AS (SELECT seq, sum(bytes) OVER (ORDER BY seq) - bytes AS bytes_before FROM due)
    SELECT json_group_array(seq) FROM summed WHERE bytes_before < ?3"
);

/// Claims those of the candidates that are still due.
const CLAIM: &str = concat!(
    "UPDATE prombus_outbox AS mine
    SET state = 'claimed', worker = ?2, lease_until_ms = ?3, attempts = attempts + 1
    WHERE mine.seq IN (SELECT value FROM json_each(?4)) AND ",
    is_due!(),
    " RETURNING "
);

/// The event is in the topic, also if another drainer holds the row now.
const SENT: &str = "UPDATE prombus_outbox
    SET state = 'sent', sent_ms = ?2, sent_seq = ?3, worker = NULL, lease_until_ms = NULL, error = NULL
    WHERE seq = ?1 AND state IN ('pending', 'claimed')";

/// Only where the row is still this worker's.
const RETRY: &str = "UPDATE prombus_outbox
    SET state = 'pending', due_ms = ?3, worker = NULL, lease_until_ms = NULL, error = ?4
    WHERE seq = ?1 AND state = 'claimed' AND worker = ?2";

const FAIL: &str = "UPDATE prombus_outbox
    SET state = 'failed', worker = NULL, lease_until_ms = NULL, error = ?3
    WHERE seq = ?1 AND state = 'claimed' AND worker = ?2";

const PRUNE: &str = "DELETE FROM prombus_outbox WHERE seq IN
    (SELECT seq FROM prombus_outbox WHERE state = 'sent' AND sent_ms <= ?1 ORDER BY sent_ms LIMIT ?2)";

/// One worker's hold on an outbox.
#[derive(Debug)]
pub struct Claims {
    connection: Connection,
    worker: String,
    lease_ms: u64,
    backoff: Backoff,
}

/// A worker's claims, used by a drainer: each call is done on a thread that may block.
#[derive(Debug)]
pub struct SharedClaims(Arc<Mutex<Claims>>);

impl Claims {
    /// A worker, who has to have a name of its own. The outbox has to be there.
    pub fn new(
        connection: Connection,
        worker: impl Into<String>,
        lease_ms: u64,
        backoff: Backoff,
    ) -> Result<Self, OutboxError> {
        // A wrong table is found out now and not with the first row.
        connection.prepare(&format!("SELECT {COLUMNS}, due_ms FROM prombus_outbox"))?;
        Ok(Self {
            connection,
            worker: worker.into(),
            lease_ms,
            backoff,
        })
    }

    /// The connection, for reading what is there.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Takes up to `max_rows` rows that are due, and about `max_bytes` of payloads, in the order of the rows. Rows
    /// that cannot be events are given up at once, and counted.
    pub fn claim(
        &mut self,
        now_ms: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<(Vec<OutboxRow>, Settled), OutboxError> {
        let (now, until) = (signed(now_ms), signed(now_ms.saturating_add(self.lease_ms)));
        let candidates = self.candidates(now, max_rows, max_bytes)?;
        if candidates == "[]" {
            return Ok((Vec::new(), Settled::default()));
        }
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let mut rows = Vec::new();
        let mut settled = Settled::default();
        {
            let mut claim = transaction.prepare_cached(&format!("{CLAIM}{COLUMNS}"))?;
            let mut claimed = claim.query(params![now, self.worker, until, candidates])?;
            let mut bad = Vec::new();
            while let Some(row) = claimed.next()? {
                match row::read(row) {
                    Ok(row) => rows.push(row),
                    Err(why) => bad.push((row.get::<_, i64>("seq")?, why)),
                }
            }
            let mut fail = transaction.prepare_cached(FAIL)?;
            for (seq, why) in bad {
                fail.execute(params![seq, self.worker, format!("bad_frame: {why}")])?;
                settled.failed += 1;
            }
        }
        transaction.commit()?;
        // What is returned comes in no particular order.
        rows.sort_by_key(|row| row.place);
        Ok((rows, settled))
    }

    /// Frees what others did not come back for, and finds what may be claimed.
    fn candidates(
        &self,
        now: i64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<String, OutboxError> {
        let mut any_expired = self.connection.prepare_cached(ANY_EXPIRED)?;
        if any_expired.query_row([now], |row| row.get::<_, bool>(0))? {
            self.connection.prepare_cached(REQUEUE)?.execute([now])?;
        }
        let mut candidates = self.connection.prepare_cached(CANDIDATES)?;
        let limits = (max_rows as i64, max_bytes.max(1) as i64);
        Ok(candidates.query_row(params![now, limits.0, limits.1], |row| row.get(0))?)
    }

    /// Writes down what became of rows; those without a result are tried again.
    pub fn settle(
        &mut self,
        now_ms: u64,
        rows: &[OutboxRow],
        results: &[Result<SentAt, PublishFailure>],
    ) -> Result<Settled, OutboxError> {
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let mut settled = Settled::default();
        {
            let mut sent = transaction.prepare_cached(SENT)?;
            let mut retry = transaction.prepare_cached(RETRY)?;
            let mut fail = transaction.prepare_cached(FAIL)?;
            let missing = Err(PublishFailure::new("no_answer", "no answer came"));
            for (at, row) in rows.iter().enumerate() {
                match results.get(at).unwrap_or(&missing) {
                    Ok(place) => {
                        sent.execute(params![row.place, signed(now_ms), signed(place.seq)])?;
                        settled.sent += 1;
                        settled.duplicates += u64::from(place.duplicate);
                    }
                    Err(failure) => {
                        let why = format!("{}: {}", failure.code, failure.why);
                        if failure.is_permanent() {
                            fail.execute(params![row.place, self.worker, why])?;
                            settled.failed += 1;
                        } else {
                            let asked_ms = failure.retry_after_ms.unwrap_or(0);
                            let wait_ms = self.backoff.wait_ms(row.attempts).max(asked_ms);
                            let due = signed(now_ms.saturating_add(wait_ms));
                            retry.execute(params![row.place, self.worker, due, why])?;
                            settled.retried += 1;
                        }
                    }
                }
            }
        }
        transaction.commit()?;
        Ok(settled)
    }

    /// Removes up to `limit` rows that were sent at or before a time, the oldest first; how many.
    pub fn prune(&mut self, sent_until_ms: u64, limit: usize) -> Result<u64, OutboxError> {
        let mut prune = self.connection.prepare_cached(PRUNE)?;
        let gone = prune.execute(params![signed(sent_until_ms), limit as i64])?;
        Ok(gone as u64)
    }
}

impl From<Claims> for SharedClaims {
    fn from(claims: Claims) -> Self {
        Self(Arc::new(Mutex::new(claims)))
    }
}

impl SharedClaims {
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Claims) -> Result<T, OutboxError> + Send + 'static,
    ) -> Result<T, OutboxError> {
        let claims = self.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut claims = claims.guard();
            work(&mut claims)
        });
        done.await.map_err(|_| TaskLost)?
    }
}

impl ClaimStore for SharedClaims {
    type Place = i64;
    type Error = OutboxError;

    async fn claim(
        &self,
        now_ms: u64,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<Claimed<i64>, OutboxError> {
        self.with(move |claims| claims.claim(now_ms, max_rows, max_bytes))
            .await
    }

    async fn settle(
        &self,
        now_ms: u64,
        rows: Vec<OutboxRow>,
        results: Vec<Result<SentAt, PublishFailure>>,
    ) -> Result<Settled, OutboxError> {
        self.with(move |claims| claims.settle(now_ms, &rows, &results))
            .await
    }

    async fn prune(&self, sent_until_ms: u64, limit: usize) -> Result<u64, OutboxError> {
        self.with(move |claims| claims.prune(sent_until_ms, limit))
            .await
    }

    async fn counts(&self) -> Result<OutboxCounts, OutboxError> {
        self.with(|claims| Outbox::counts(claims.connection()))
            .await
    }
}
