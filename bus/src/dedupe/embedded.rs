//! Dedupe marks in the store's keyed records.
//!
//! Keyed records live in the store's memory and in each of its checkpoints, so one record for each mark would be
//! dear. Marks are packed: a scope has [`SLOTS`] records, and the hash of an id says which of them holds its mark. So
//! looking one up reads one record, marking compares and sets one, several buses on one store never disagree, and
//! each write drops what has run out in the record that it touches.

mod maintenance;
mod slot;

use maintenance::Maintenance;
use prombus_interface::{DedupeError, DedupeStore};
use prombus_store::{Answer, Batch, Change, Clock, CommitError, Expect, LimitReached, Store};
use slot::{Slot, slot_key};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many records a scope's marks are spread over.
const SLOTS: u64 = 4_096;
/// The most marks in one of them. A scope holds some 400,000 marks before the first of its slots is full; then the
/// mark of that slot that would run out first makes room for the new one, and is counted as forgotten.
const MAX_SLOT_MARKS: usize = 128;
/// The most bytes of all marks of all scopes, half of what a log takes of keyed records; some 600,000 marks of events
/// whose ids the bus made. Beyond it marks are refused, so that groups can still be written.
const MAX_DEDUPE_BYTES: u64 = 32 << 20;
/// The longest id or scope.
const MAX_NAME_BYTES: usize = 512;
/// How often a mark is tried while others change the same slot.
const MAX_TRIES: usize = 64;

/// Dedupe marks beside the events, in the bus's own store; from [`crate::Bus::dedupe`].
#[derive(Clone)]
pub struct EmbeddedDedupe {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    maintenance: Maintenance,
    max_bytes: u64,
    forgotten: AtomicU64,
}

impl EmbeddedDedupe {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self::with_limit(store, clock, MAX_DEDUPE_BYTES)
    }

    fn with_limit(store: Arc<dyn Store>, clock: Arc<dyn Clock>, max_bytes: u64) -> Self {
        Self {
            inner: Arc::new(Inner {
                store,
                clock,
                maintenance: Maintenance::default(),
                max_bytes,
                forgotten: AtomicU64::new(0),
            }),
        }
    }

    /// How many marks went before their time because their slot was full, since this was made.
    pub fn forgotten(&self) -> u64 {
        self.inner.forgotten.load(Ordering::Relaxed)
    }

    /// Drops the marks of all scopes that have run out, and says how many. Marking does this now and then by itself.
    pub async fn prune(&self) -> Result<u64, DedupeError> {
        self.inner.prune().await
    }
}

impl DedupeStore for EmbeddedDedupe {
    fn seen(&self, scope: &str, id: &str) -> Answer<bool, DedupeError> {
        let (inner, key, id) = (self.inner.clone(), slot_key(scope, id), id.to_owned());
        Box::pin(async move {
            let Some(record) = inner.store.get(&key).await? else {
                return Ok(false);
            };
            let slot = Slot::from_bytes(&record.value)?;
            Ok(slot.holds(&id, inner.clock.now_ms()))
        })
    }

    fn mark(&self, scope: &str, id: &str, ttl_ms: u64) -> Answer<(), DedupeError> {
        let inner = self.inner.clone();
        let checked = check(scope, "dedupe_scope_bytes").and(check(id, "dedupe_id_bytes"));
        let (key, id) = (slot_key(scope, id), id.to_owned());
        Box::pin(async move {
            checked?;
            inner.mark(&key, &id, ttl_ms).await
        })
    }
}

impl Inner {
    async fn mark(&self, key: &Arc<str>, id: &str, ttl_ms: u64) -> Result<(), DedupeError> {
        if self.maintenance.is_due(self.clock.now_ms()) {
            self.prune().await?;
        }
        for _ in 0..MAX_TRIES {
            let now_ms = self.clock.now_ms();
            let found = self.store.get(key).await?;
            let (mut slot, expect, old_bytes) = match &found {
                Some(record) => (
                    Slot::from_bytes(&record.value)?,
                    Expect::Version(record.version),
                    (key.len() + record.value.len()) as u64,
                ),
                None => (Slot::default(), Expect::Absent, 0),
            };
            slot.drop_run_out(now_ms);
            let forgotten = slot.add(id, now_ms.saturating_add(ttl_ms));
            let value = slot.to_bytes();
            let new_bytes = (key.len() + value.len()) as u64;
            self.check_room(old_bytes, new_bytes)?;
            let mut batch = Batch::new();
            batch.change(Change::Put {
                key: key.clone(),
                value,
                expect,
            });
            match self.store.commit(batch).await {
                Ok(_) => {
                    self.maintenance.changed(old_bytes, new_bytes);
                    self.forgotten.fetch_add(forgotten, Ordering::Relaxed);
                    return Ok(());
                }
                Err(CommitError::VersionMismatch(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(DedupeError::failed("others keep changing the same slot"))
    }

    fn check_room(&self, old_bytes: u64, new_bytes: u64) -> Result<(), LimitReached> {
        let grows = new_bytes > old_bytes;
        if grows && self.maintenance.held_bytes() + (new_bytes - old_bytes) > self.max_bytes {
            self.maintenance.is_full();
            return Err(LimitReached {
                name: "dedupe_bytes",
                limit: self.max_bytes,
            });
        }
        Ok(())
    }
}

impl fmt::Debug for EmbeddedDedupe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedDedupe")
            .field("held_bytes", &self.inner.maintenance.held_bytes())
            .field("forgotten", &self.forgotten())
            .finish_non_exhaustive()
    }
}

fn check(text: &str, name: &'static str) -> Result<(), LimitReached> {
    if text.len() <= MAX_NAME_BYTES {
        Ok(())
    } else {
        Err(LimitReached {
            name,
            limit: MAX_NAME_BYTES as u64,
        })
    }
}

#[cfg(test)]
mod tests;
