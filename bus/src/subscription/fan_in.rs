//! Many topics in one subscription: by list, and by patterns that also match topics made later.

use super::options::settings;
use super::pattern_group::PatternGroup;
use super::subscribe::SubscribeRequest;
use super::topic_queue::TopicQueue;
use super::{Shared, SubscribeOptions};
use crate::core::Core;
use crate::error::{GroupError, SubscribeError};
use crate::group::command::PatternDefaults;
use crate::group::inbox::Inbox;
use crate::group::membership::Membership;
use crate::group::record::{GroupRecord, record_key};
use crate::group::registry::Registry;
use futures_util::future::join_all;
use prombus_interface::names::{check_topic, is_internal_topic};
use prombus_interface::{Pattern, StartAt};
use prombus_store::{Store, TailAdvances, TopicInfo};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How many topics the follower joins at a time, before it learns of those that have moved or ended meanwhile.
const JOINED_TOGETHER: usize = 64;
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
        let (from, request) = (&options.from, settings(options));
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

/// How far the follower got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joined {
    /// Others wait, and can be looked at now.
    Some,
    /// Others could not be joined, or none are left.
    AsFarAsPossible,
}

/// Joins matching topics when there is something to deliver in them.
pub(super) struct Follower {
    pub(super) core: Arc<Core>,
    pub(super) registry: Weak<Registry>,
    pub(super) shared: Weak<Shared>,
    pub(super) request: SubscribeRequest,
    pub(super) selection: Selection,
    /// Where it waits for its turn to join more topics than it may have at a time.
    pub(super) turn: Arc<Inbox>,
    /// Topics that have to be looked at.
    pub(super) waiting: TopicQueue,
    /// Those that could not be joined, and are tried again a moment later.
    pub(super) failed: Vec<Arc<str>>,
    /// Where an ephemeral group is in topics that it was served from, by incarnation: nothing of it is stored.
    pub(super) dormant: HashMap<Arc<str>, (u64, u64)>,
}

impl Follower {
    /// Follows until the subscription or the bus is gone.
    pub(super) async fn run(mut self, mut moved: TailAdvances) {
        loop {
            self.queue_detached_topics();
            let Some(joined) = self.join_waiting().await else {
                return;
            };
            let retry = tokio::time::sleep(Duration::from_millis(REJOIN_MS));
            let subscriber = self.request.subscriber.clone();
            tokio::select! {
                biased;
                topics = moved.moved() => match topics {
                    Some(topics) => self.queue_moved_topics(topics),
                    None => return,
                },
                () = subscriber.group_detached() => {}
                // It is its turn, or was resumed.
                () = self.turn.arrived() => {}
                () = std::future::ready(()), if joined == Joined::Some => {}
                () = retry, if !self.waiting.is_empty() || !self.failed.is_empty() => {
                    let failed = std::mem::take(&mut self.failed);
                    self.waiting.extend(failed);
                }
            }
        }
    }

    /// Has all topics looked at that match.
    pub(super) fn queue_all(&mut self) {
        let matching = self.selection.matching(&*self.core.store);
        self.waiting.extend(matching);
    }

    /// How many more topics may be joined now. A subscription that is served from very many already joins another one only
    /// where it has room, in turn with the owners that wait for that.
    fn may_join(&self) -> usize {
        let subscriber = &self.request.subscriber;
        let joined = subscriber.attached_groups();
        let most = self.core.options.pattern_topics;
        if joined < most {
            return most - joined;
        }
        let has_room = joined < most + self.request.options.max_in_flight;
        let is_its_turn =
            has_room && subscriber.is_open() && subscriber.credit.takes_turn(&self.turn);
        usize::from(is_its_turn)
    }

    /// Looks at some of the topics that wait, as far as more may be joined; `None` where the subscription or the bus is
    /// gone. They are joined together, so that their records are written with one sync.
    async fn join_waiting(&mut self) -> Option<Joined> {
        if !self.waiting.is_empty() {
            let count = self.may_join().min(JOINED_TOGETHER);
            if count == 0 {
                // It waits for its turn in the queue for credit.
                self.request.subscriber.set_waiting_topics(true);
                return Some(Joined::AsFarAsPossible);
            }
            let topics: Vec<Arc<str>> = std::iter::from_fn(|| self.waiting.pop())
                .take(count)
                .collect();
            let (registry, shared) = (self.registry.upgrade()?, self.shared.upgrade()?);
            let joins = topics
                .iter()
                .map(|topic| self.join(&registry, &shared, topic));
            let joined = join_all(joins).await;
            for (topic, joined) in topics.into_iter().zip(joined) {
                if self.core.store.topic(&topic).is_none() {
                    self.dormant.remove(&topic);
                }
                match joined {
                    Ok(()) => {}
                    Err(GroupError::Closed) if self.core.is_closed() => return None,
                    Err(_) => self.failed.push(topic),
                }
            }
        }
        let are_waiting = !self.waiting.is_empty();
        self.request.subscriber.set_waiting_topics(are_waiting);
        // Others are not to wait for one that needs nothing.
        self.request.subscriber.credit.dequeue(&self.turn);
        Some(if self.waiting.is_empty() {
            Joined::AsFarAsPossible
        } else {
            Joined::Some
        })
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
        let start = match self.dormant.get(topic) {
            Some((incarnation, cursor)) if *incarnation == info.incarnation => {
                StartAt::Seq(cursor + 1)
            }
            _ => pattern_group.of(info.incarnation),
        };
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
        shared.add_membership(topic, membership);
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

    /// Looks again at topics whose group has ended: there may be something in them by now, it may have been removed, or
    /// the topic made again.
    fn queue_detached_topics(&mut self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        for topic in self.request.subscriber.take_detached() {
            let mut memberships = shared.memberships();
            let is_closed = |membership: &Membership| membership.inbox.is_closed();
            if memberships.get(&topic).is_some_and(is_closed)
                && let Some(ended) = memberships.remove(&topic)
            {
                drop(memberships);
                if self.request.ephemeral
                    && let Some(at) = ended.inbox.dormant_at()
                {
                    self.dormant.insert(topic.clone(), at);
                }
            }
            if self.selection.matches(&topic) {
                self.waiting.push(topic);
            }
        }
    }
}
