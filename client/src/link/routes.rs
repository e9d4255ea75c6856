//! Which subscription an event is for.

use super::SubscriptionEntry;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the last event went, so that the next one like it needs no search.
#[derive(Default)]
pub(super) struct Routes {
    last: Option<Route>,
    /// The topic of the last event; many events share the name.
    topic: Option<Arc<str>>,
}

struct Route {
    topic: Box<str>,
    group: Box<str>,
    entry: u64,
}

impl Routes {
    /// The number of the subscription that named its topic or pattern and its group like this; `None` where there is
    /// none.
    pub(super) fn find(
        &mut self,
        subscriptions: &BTreeMap<u64, SubscriptionEntry>,
        topic: &str,
        group: &str,
    ) -> Option<u64> {
        if let Some(last) = &self.last
            && &*last.topic == topic
            && &*last.group == group
        {
            return Some(last.entry);
        }
        let entry = search(subscriptions, topic, group)?;
        self.last = Some(Route {
            topic: topic.into(),
            group: group.into(),
            entry,
        });
        Some(entry)
    }

    /// A name of a topic to be shared.
    pub(super) fn name(&mut self, topic: &str) -> Arc<str> {
        match &self.topic {
            Some(last) if **last == *topic => last.clone(),
            _ => self.topic.insert(topic.into()).clone(),
        }
    }

    /// Subscriptions have come or gone.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }
}

/// The one with this topic and group, or else the only one of the group.
fn search(
    subscriptions: &BTreeMap<u64, SubscriptionEntry>,
    topic: &str,
    group: &str,
) -> Option<u64> {
    let of_group = || {
        subscriptions
            .values()
            .filter(|entry| *entry.shared.group() == *group)
            .map(|entry| &entry.shared)
    };
    let named = of_group().find(|shared| *shared.topic == *topic);
    let only = || of_group().next().filter(|_| of_group().count() == 1);
    named.or_else(only).map(|shared| shared.number)
}
