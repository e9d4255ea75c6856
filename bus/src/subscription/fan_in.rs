//! Many topics in one subscription: by list, and by patterns that also match topics made later.

use super::pattern_group::PatternGroup;
use super::subscribe::SubscribeRequest;
use super::{Shared, SubscribeOptions};
use crate::core::Core;
use crate::error::{GroupError, SubscribeError};
use crate::group::StartAt;
use crate::group::command::PatternDefaults;
use crate::group::record::{GroupRecord, record_key};
use crate::group::registry::Registry;
use crate::names::{check_topic, is_internal_topic};
use crate::pattern::Pattern;
use prombus_store::{Store, TailAdvances, TopicInfo};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long the follower waits before it tries a topic again that it could not join.
const REJOIN_MS: u64 = 1_000;

/// The topics that a subscription names or matches.
pub(super) struct Selection {
    pub(super) names: BTreeSet<Arc<str>>,
    pub(super) patterns: Vec<Pattern>,
    /// Where the group begins in the topics of each pattern.
    pattern_groups: Vec<PatternGroup>,
}

impl Selection {
    pub(super) fn new(topic: &str, more: &[String]) -> Result<Self, SubscribeError> {
        let mut selection = Self {
            names: BTreeSet::new(),
            patterns: Vec::new(),
            pattern_groups: Vec::new(),
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

    /// The topics there are now that match a pattern.
    pub(super) fn matching(&self, store: &dyn Store) -> BTreeSet<Arc<str>> {
        if self.patterns.is_empty() {
            return BTreeSet::new();
        }
        let all = store.topics().into_iter().map(|info| info.name);
        all.filter(|name| self.matches(name)).collect()
    }

    pub(super) fn matches(&self, topic: &str) -> bool {
        !is_internal_topic(topic) && self.patterns.iter().any(|pattern| pattern.matches(topic))
    }

    /// Where the group begins in a topic that matches a pattern.
    fn pattern_group_of(&self, topic: &str) -> Option<&PatternGroup> {
        let mut patterns = self.patterns.iter().zip(&self.pattern_groups);
        let found = patterns.find(|(pattern, _)| pattern.matches(topic));
        found.map(|(_, start)| start)
    }

    /// Finds out where the group begins, once and for all where it is durable.
    pub(super) async fn resolve_starts(
        &mut self,
        core: &Core,
        group: &str,
        ephemeral: bool,
        options: &SubscribeOptions,
    ) -> Result<(), GroupError> {
        let (from, request) = (&options.from, options.settings());
        for pattern in &self.patterns {
            self.pattern_groups.push(if ephemeral {
                PatternGroup::new(pattern, from, &request, core)
            } else {
                PatternGroup::stored(core, pattern, group, from, &request).await?
            });
        }
        Ok(())
    }
}

/// Joins matching topics when there is something to deliver in them.
pub(super) struct Follower {
    pub(super) core: Arc<Core>,
    pub(super) registry: Weak<Registry>,
    pub(super) shared: Weak<Shared>,
    pub(super) request: SubscribeRequest,
    pub(super) selection: Selection,
    /// Topics that have to be looked at, each once.
    pub(super) waiting: BTreeSet<Arc<str>>,
}

impl Follower {
    /// Follows until the subscription or the bus is gone.
    pub(super) async fn run(mut self, mut moved: TailAdvances) {
        loop {
            if !self.join_waiting(usize::MAX).await {
                return;
            }
            let retry = tokio::time::sleep(Duration::from_millis(REJOIN_MS));
            let subscriber = self.request.subscriber.clone();
            tokio::select! {
                biased;
                topics = moved.moved() => match topics {
                    Some(topics) => self.queue_moved_topics(topics),
                    None => return,
                },
                () = subscriber.group_detached() => self.queue_ended_topics(),
                // Those that could not be joined are tried again.
                () = retry, if !self.waiting.is_empty() => {}
            }
        }
    }

    /// Looks at up to `limit` topics that wait; `false` where the subscription or the bus is gone.
    pub(super) async fn join_waiting(&mut self, limit: usize) -> bool {
        let mut failed = BTreeSet::new();
        for _ in 0..limit {
            let Some(topic) = self.waiting.pop_first() else {
                break;
            };
            let (Some(registry), Some(shared)) = (self.registry.upgrade(), self.shared.upgrade())
            else {
                return false;
            };
            match self.join(&registry, &shared, &topic).await {
                Ok(()) => {}
                Err(GroupError::Closed) if self.core.is_closed() => return false,
                Err(_) => drop(failed.insert(topic)),
            }
        }
        self.waiting.append(&mut failed);
        true
    }

    /// Joins a topic where something is undelivered.
    pub(super) async fn join(
        &self,
        registry: &Registry,
        shared: &Shared,
        topic: &Arc<str>,
    ) -> Result<(), GroupError> {
        let Some(info) = self.core.store.topic(topic) else {
            return Ok(());
        };
        let Some(pattern_group) = self.selection.pattern_group_of(topic) else {
            return Ok(());
        };
        let start = pattern_group.of(info.incarnation);
        if shared.has_open_membership(topic) || !self.is_behind(&info, &start).await? {
            return Ok(());
        }
        let pattern = PatternDefaults {
            settings: pattern_group.settings().clone(),
            incarnation: info.incarnation,
        };
        let membership = self
            .request
            .join_pattern(&self.core, registry, topic, &start, &pattern)
            .await?;
        drop(shared.memberships().insert(topic.clone(), membership));
        Ok(())
    }

    /// Whether a topic has something that the group has not settled.
    async fn is_behind(&self, info: &TopicInfo, start: &StartAt) -> Result<bool, GroupError> {
        if !self.request.ephemeral {
            let key = record_key(&info.name, &self.request.group);
            let stored = self.core.store.get(&key).await?;
            let record = stored.and_then(|stored| GroupRecord::from_bytes(&stored.value).ok());
            if let Some(record) = record
                && record.incarnation.is_none_or(|one| one == info.incarnation)
            {
                return Ok(record.is_behind(info.first_seq, info.tail_seq));
            }
        }
        Ok(match start {
            StartAt::Seq(seq) => info.tail_seq >= *seq,
            _ => info.tail_seq > 0,
        })
    }

    fn queue_moved_topics(&mut self, topics: BTreeSet<Arc<str>>) {
        let matching = topics
            .into_iter()
            .filter(|topic| self.selection.matches(topic));
        self.waiting.extend(matching);
    }

    /// Looks again at topics whose group has ended: it may have been removed, or the topic made again.
    fn queue_ended_topics(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let mut memberships = shared.memberships();
        let ended = memberships
            .iter()
            .filter(|(_, membership)| membership.inbox.is_closed());
        let ended: Vec<Arc<str>> = ended.map(|(topic, _)| topic.clone()).collect();
        for topic in ended {
            memberships.remove(&topic);
            if self.selection.matches(&topic) {
                self.waiting.insert(topic);
            }
        }
    }
}
