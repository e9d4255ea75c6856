//! What subscriptions want from the connection's task.

use super::settling::Confirm;
use super::shared::Shared;
use super::stepping::Stepping;
use std::collections::VecDeque;
use std::sync::Arc;

/// The desk where subscriptions leave word.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Subscriptions that have something new, each once.
    touched: Vec<Arc<Shared>>,
    /// Answers that somebody waits to see confirmed; at most as many as there is room for.
    confirms: VecDeque<Confirm>,
    /// Steps to be sent; at most as many as there is room for.
    steps: VecDeque<Stepping>,
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

    /// Somebody makes a step. Where nobody will ever look, it is dropped.
    pub(crate) fn step(&mut self, step: Stepping) {
        if !self.has_ended {
            self.steps.push_back(step);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.confirms.is_empty() && self.steps.is_empty()
    }

    /// Takes everything that was left here.
    pub(crate) fn take(
        &mut self,
        touched: &mut Vec<Arc<Shared>>,
        confirms: &mut VecDeque<Confirm>,
        steps: &mut VecDeque<Stepping>,
    ) {
        touched.append(&mut self.touched);
        confirms.append(&mut self.confirms);
        steps.append(&mut self.steps);
    }

    /// Nobody will look any more.
    pub(crate) fn end(&mut self) -> Vec<Arc<Shared>> {
        self.has_ended = true;
        self.confirms.clear();
        self.steps.clear();
        std::mem::take(&mut self.touched)
    }
}
