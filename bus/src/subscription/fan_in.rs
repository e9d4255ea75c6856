//! Many topics in one subscription: by list, and by patterns that also match topics made later.

use super::Shared;
use super::subscribing::Subscribing;
use crate::core::Core;
use crate::error::{GroupError, SubscribeError};
use crate::group::StartAt;
use crate::group::registry::Registry;
use crate::names::check_topic;
use crate::pattern::Pattern;
use prombus_store::{Store, TopicsWatch};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long the follower waits before it tries a topic again that it could not join.
const REJOIN_MS: u64 = 1_000;

/// The topics that a subscription names or matches.
pub(super) struct Selection {
    pub(super) names: BTreeSet<Arc<str>>,
    pub(super) patterns: Vec<Pattern>,
}

impl Selection {
    pub(super) fn new(topic: &str, more: &[String]) -> Result<Self, SubscribeError> {
        let mut selection = Self {
            names: BTreeSet::new(),
            patterns: Vec::new(),
        };
        // Where a list is given, the topic itself may be left empty.
        let topic = Some(topic).filter(|topic| !topic.is_empty() || more.is_empty());
        for text in topic.into_iter().chain(more.iter().map(String::as_str)) {
            if Pattern::is_pattern(text) {
                selection.patterns.push(Pattern::for_topics(text)?);
            } else {
                check_topic(text)?;
                selection.names.insert(text.into());
            }
        }
        Ok(selection)
    }

    /// All names, and all topics there are now that match.
    pub(super) fn topics_now(&self, store: &dyn Store) -> BTreeSet<Arc<str>> {
        let mut topics = self.names.clone();
        if !self.patterns.is_empty() {
            let all = store.topics().into_iter().map(|info| info.name);
            topics.extend(all.filter(|name| self.matches(name)));
        }
        topics
    }

    fn matches(&self, topic: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(topic))
    }
}

/// Joins topics that match as they are made, from their first event on.
pub(super) async fn follow(
    core: Arc<Core>,
    registry: Weak<Registry>,
    shared: Weak<Shared>,
    subscribing: Subscribing,
    selection: Selection,
    mut watch: TopicsWatch,
) {
    let mut all_joined = true;
    loop {
        if all_joined {
            if !watch.changed().await {
                return;
            }
        } else {
            tokio::time::sleep(Duration::from_millis(REJOIN_MS)).await;
        }
        let (Some(registry), Some(shared)) = (registry.upgrade(), shared.upgrade()) else {
            return;
        };
        // A seat whose owner is gone was one of a topic that has been deleted.
        shared.seats().retain(|_, seat| !seat.inbox.is_closed());
        all_joined = true;
        for topic in selection.topics_now(&*core.store) {
            let seated = shared.seats().contains_key(&topic);
            if seated || !selection.matches(&topic) {
                continue;
            }
            match subscribing
                .join(&core, &registry, &topic, &StartAt::Seq(1))
                .await
            {
                Ok(seat) => drop(shared.seats().insert(topic, seat)),
                Err(GroupError::Closed) => return,
                Err(_) => all_joined = false,
            }
        }
    }
}
