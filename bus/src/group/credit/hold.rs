//! Bytes that are counted against a subscription, a group and the bus at once, until the hold is dropped.

use super::Credit;
use crate::group::inbox::Inbox;
use std::sync::Arc;

/// Bytes of events that are being read for a mailbox or wait in it. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct ByteHold {
    credit: Arc<Credit>,
    /// Of the group.
    inbox: Arc<Inbox>,
    bytes: usize,
}

impl ByteHold {
    /// Counts bytes of the group behind `inbox`.
    pub(crate) fn new(credit: &Arc<Credit>, inbox: &Arc<Inbox>, bytes: usize) -> Self {
        let mut hold = Self {
            credit: credit.clone(),
            inbox: inbox.clone(),
            bytes: 0,
        };
        hold.add(bytes);
        hold
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a part of it, and counts what is missing: an event may be larger than what was kept for it.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let kept = bytes.min(self.bytes);
        self.bytes -= kept;
        let mut part = Self {
            credit: self.credit.clone(),
            inbox: self.inbox.clone(),
            bytes: kept,
        };
        part.add(bytes - kept);
        part
    }

    /// Gives some of it back.
    pub(crate) fn release(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        if bytes == 0 {
            return;
        }
        self.bytes -= bytes;
        self.credit.bytes.sub(bytes);
        self.inbox.bytes.sub(bytes);
        self.credit.memory.sub(bytes);
        self.credit.bytes_returned(&self.inbox);
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.credit.bytes.add(bytes);
        self.inbox.bytes.add(bytes);
        self.credit.memory.add(bytes);
    }
}

impl Drop for ByteHold {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}
