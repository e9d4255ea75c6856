//! Topics that wait to be looked at, first come first served and each once.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct TopicQueue {
    order: VecDeque<Arc<str>>,
    queued: HashSet<Arc<str>>,
}

impl TopicQueue {
    pub(super) fn push(&mut self, topic: Arc<str>) {
        if self.queued.insert(topic.clone()) {
            self.order.push_back(topic);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Arc<str>> {
        let topic = self.order.pop_front()?;
        self.queued.remove(&topic);
        if self.order.is_empty() {
            // All topics of a pattern were in it once, and few are later.
            *self = Self::default();
        }
        Some(topic)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

impl Extend<Arc<str>> for TopicQueue {
    fn extend<T: IntoIterator<Item = Arc<str>>>(&mut self, topics: T) {
        topics.into_iter().for_each(|topic| self.push(topic));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_come_once_and_in_order() {
        let mut queue = TopicQueue::default();
        queue.extend(["b", "a", "b", "c"].map(Arc::from));
        assert_eq!(queue.pop().as_deref(), Some("b"));
        queue.push("b".into());
        queue.push("a".into());
        let rest: Vec<Arc<str>> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, ["a", "c", "b"].map(Arc::from));
        assert!(queue.is_empty());
    }
}
