//! A list that forgets its oldest item when it is full.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

#[derive(Debug)]
pub(super) struct Ring<T> {
    items: VecDeque<T>,
    limit: usize,
}

impl<T> Ring<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            items: VecDeque::new(),
            limit,
        }
    }

    pub(super) fn push(&mut self, item: T) {
        if self.items.len() >= self.limit {
            self.items.pop_front();
        }
        self.items.push_back(item);
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.items.back_mut()
    }

    /// Oldest first.
    pub(super) fn iter(&self) -> Iter<'_, T> {
        self.items.iter()
    }
}
