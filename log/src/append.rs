//! Taking a batch in: what it needs to know of ids and keys is looked up without the buffer's lock, then it is admitted, and
//! written at once where no one has to wait for an fsync.

use crate::committer::Committer;
use crate::completion::Commit;
use crate::write_buffer::Known;
use prombus_store::{Batch, CommitError, StoreFailed};

/// Who does the sync that a batch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncBy {
    Thread,
    Caller,
}

impl Committer {
    /// Waits until readers see everything that has a position.
    pub(crate) fn show_all(&self) -> Result<(), CommitError> {
        if self.options.threads {
            self.barrier().wait().map(drop)
        } else {
            self.commit_cycle();
            Ok(())
        }
    }

    /// A commit of nothing, durable when all before it is.
    pub(crate) fn barrier(&self) -> Commit {
        let mut buffer = self.buffer();
        if let Some(refusal) = &buffer.refusal {
            return Commit::resolved(Err(refusal.clone()));
        }
        buffer.pending.awaited = true;
        self.want_sync(&mut buffer);
        Commit::waiting_for(
            prombus_store::Receipt::default(),
            buffer.pending.synced.clone(),
        )
    }

    /// Takes a batch in, and writes it at once where no one has to wait for an fsync. True if a commit cycle is
    /// left to the caller, who has to have the right to it.
    pub(crate) fn append(
        &self,
        batch: &Batch,
        sync_by: SyncBy,
        block: &dyn Fn(&mut dyn FnMut()),
    ) -> (Commit, bool) {
        if batch.is_empty() {
            let receipt = prombus_store::Receipt::default();
            return (Commit::resolved(Ok(receipt)), false);
        }
        let has_client_ids = batch.has_client_ids();
        let (admitted, wants_sync) = loop {
            // Client ids are looked up before the lock is taken. If a segment was sealed meanwhile its ids may have
            // been missed, and the look-up is repeated.
            let epoch = if has_client_ids {
                self.buffer().unsealed_ids.epoch
            } else {
                0
            };
            let in_memory = self.reader.look_up_in_memory(batch);
            let looked_up = if in_memory.is_complete() {
                Ok(in_memory.held)
            } else {
                let mut in_memory = Some(in_memory);
                let mut looked_up = Ok(Vec::new());
                block(&mut || {
                    looked_up = self
                        .reader
                        .look_up_on_disk(batch, in_memory.take().unwrap_or_default());
                });
                looked_up
            };
            let held = match looked_up {
                Ok(held) => held,
                Err(error) => {
                    let cause = error.to_string().into();
                    return (Commit::resolved(Err(StoreFailed { cause }.into())), false);
                }
            };
            // It ends when it is dropped, after the buffer's lock.
            let keys = match self.watch_keys(std::slice::from_ref(batch), block) {
                Ok(keys) => keys,
                Err(error) => return (Commit::resolved(Err(error)), false),
            };
            let now_ms = self.options.clock.now_ms();
            let mut buffer = self.buffer();
            if has_client_ids && buffer.unsealed_ids.epoch != epoch || !keys.is_current(&buffer) {
                continue;
            }
            let known = Known {
                held: &held,
                keys: keys.seen(0),
            };
            match buffer.admit(batch, known, now_ms) {
                Ok(admitted) => {
                    let wants_sync = admitted.wants_sync;
                    if wants_sync && sync_by == SyncBy::Thread {
                        self.want_sync(&mut buffer);
                    }
                    break (admitted, wants_sync);
                }
                Err(error) => return (Commit::resolved(Err(error)), false),
            }
        };
        if !wants_sync && self.options.threads {
            self.write_if_idle();
        }
        let commit = Commit::waiting_for(admitted.receipt, admitted.completion);
        (commit, wants_sync && sync_by == SyncBy::Caller)
    }
}
