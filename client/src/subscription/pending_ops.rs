//! What subscriptions want from the connection's task.

use super::ack_publish::AckPublish;
use super::settle::Confirm;
use super::shared::Shared;
use std::collections::VecDeque;
use std::sync::Arc;

/// The desk where subscriptions leave word.
#[derive(Debug, Default)]
pub(crate) struct PendingOps {
    /// Subscriptions that have something new, each once.
    dirty: Vec<Arc<Shared>>,
    /// Settles that callers await; bounded by `MAX_CONFIRMS`.
    confirms: VecDeque<Confirm>,
    /// Ack-and-publish transactions to be sent; bounded by the publish permits.
    ack_publishes: VecDeque<AckPublish>,
    has_ended: bool,
}

impl PendingOps {
    /// Marks a subscription as having work. `false` after the end, when no task looks any more.
    pub(crate) fn mark_dirty(&mut self, shared: &Arc<Shared>) -> bool {
        if !self.has_ended {
            self.dirty.push(shared.clone());
        }
        !self.has_ended
    }

    /// Queues a settle that a caller awaits. Dropped after the end.
    pub(crate) fn confirm(&mut self, confirm: Confirm) {
        if !self.has_ended {
            self.confirms.push_back(confirm);
        }
    }

    /// Queues an ack-and-publish transaction. Dropped after the end.
    pub(crate) fn ack_publish(&mut self, op: AckPublish) {
        if !self.has_ended {
            self.ack_publishes.push_back(op);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.confirms.is_empty() && self.ack_publishes.is_empty()
    }

    /// Takes everything that was left here.
    pub(crate) fn take(
        &mut self,
        dirty: &mut Vec<Arc<Shared>>,
        confirms: &mut VecDeque<Confirm>,
        ack_publishes: &mut VecDeque<AckPublish>,
    ) {
        dirty.append(&mut self.dirty);
        confirms.append(&mut self.confirms);
        ack_publishes.append(&mut self.ack_publishes);
    }

    /// No task will look any more.
    pub(crate) fn end(&mut self) -> Vec<Arc<Shared>> {
        self.has_ended = true;
        self.confirms.clear();
        self.ack_publishes.clear();
        std::mem::take(&mut self.dirty)
    }
}
