//! What subscriptions want from the connection's task.

use super::settling::Confirm;
use super::shared::Shared;
use std::collections::VecDeque;
use std::sync::Arc;

/// The desk where subscriptions leave word.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Subscriptions that have something new, each once.
    touched: Vec<Arc<Shared>>,
    /// Answers that somebody waits to see confirmed; at most as many as there is room for.
    confirms: VecDeque<Confirm>,
    has_ended: bool,
}

impl Desk {
    /// A subscription has something new. Gives back `false` where nobody will ever look.
    pub(crate) fn touch(&mut self, shared: &Arc<Shared>) -> bool {
        if !self.has_ended {
            self.touched.push(shared.clone());
        }
        !self.has_ended
    }

    /// Somebody waits for a confirmation. Where nobody will ever look, it is dropped.
    pub(crate) fn confirm(&mut self, confirm: Confirm) {
        if !self.has_ended {
            self.confirms.push_back(confirm);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.confirms.is_empty()
    }

    /// Takes everything that was left here.
    pub(crate) fn take(
        &mut self,
        touched: &mut Vec<Arc<Shared>>,
        confirms: &mut VecDeque<Confirm>,
    ) {
        touched.append(&mut self.touched);
        confirms.append(&mut self.confirms);
    }

    /// Nobody will look any more.
    pub(crate) fn end(&mut self) -> Vec<Arc<Shared>> {
        self.has_ended = true;
        self.confirms.clear();
        std::mem::take(&mut self.touched)
    }
}
