//! Which topics exist, remembered so that publishing does not have to ask the store, and how new ones are made.

use crate::error::InvalidTopic;
use crate::names::{check_topic, is_internal_topic};
use crate::pattern::Pattern;
use crate::topic::TopicConfig;
use foldhash::HashSet;
use prombus_store::{Answer, Batch, Change, CommitError, IfExists, Receipt, Store, UnknownTopic};
use std::sync::{Arc, PoisonError, RwLock};

/// The most names that are remembered; beyond it the memory starts afresh.
const MAX_KNOWN_TOPICS: usize = 65_536;

/// The bus's memory of topics.
pub(crate) struct Topics {
    store: Arc<dyn Store>,
    auto_create: bool,
    defaults: Vec<(Pattern, TopicConfig)>,
    /// Topics that exist, or whose making is on its way to the store ahead of whatever is committed next.
    known: RwLock<HashSet<Arc<str>>>,
}

/// A topic's name, shared, and whether the topic is known to exist.
pub(crate) struct Named {
    pub(crate) topic: Arc<str>,
    pub(crate) known: bool,
}

impl Topics {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        auto_create: bool,
        defaults: Vec<(Pattern, TopicConfig)>,
    ) -> Self {
        Self {
            store,
            auto_create,
            defaults,
            known: RwLock::default(),
        }
    }

    /// The shared form of a name, without asking the store.
    pub(crate) fn named(&self, topic: &str) -> Named {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        match known.get(topic) {
            Some(topic) => Named {
                topic: topic.clone(),
                known: true,
            },
            None => Named {
                topic: topic.into(),
                known: false,
            },
        }
    }

    /// The same for a name of a caller: a known one is valid, any other is checked.
    pub(crate) fn checked(&self, topic: &str) -> Result<Named, InvalidTopic> {
        let named = self.named(topic);
        if !named.known || is_internal_topic(topic) {
            check_topic(topic)?;
        }
        Ok(named)
    }

    /// Makes sure that a topic exists for whatever is committed after this call, and makes it where that is allowed:
    /// by the bus's options, or because it is `needed` whatever they say.
    pub(crate) fn ensure(&self, topic: &Arc<str>, needed: bool) -> Result<(), UnknownTopic> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.contains(topic) {
            return Ok(());
        }
        if self.store.topic(topic).is_none() {
            if !self.auto_create && !needed {
                return Err(UnknownTopic {
                    topic: topic.clone(),
                });
            }
            let mut batch = Batch::new();
            batch.change(Change::PutTopic {
                topic: topic.clone(),
                options: self.default_config(topic).to_options(),
                if_exists: IfExists::Keep,
            });
            // Commits happen in the order of their calls, so the caller need not wait for this one; should it fail, the
            // publish behind it fails too. Under the lock, so that no second maker overwrites its options.
            drop(self.store.commit(batch));
        }
        if known.len() >= MAX_KNOWN_TOPICS {
            known.clear();
        }
        known.insert(topic.clone());
        Ok(())
    }

    /// Whether a publish to a topic finds or makes it.
    pub(crate) fn check(&self, topic: &Arc<str>) -> Result<(), UnknownTopic> {
        if self.may_exist(topic) {
            return Ok(());
        }
        Err(UnknownTopic {
            topic: topic.clone(),
        })
    }

    /// Commits an atomic batch together with the topics that it needs and that do not exist: where it is refused, they
    /// are not made either. Under the same lock as [`Self::ensure`].
    pub(crate) fn commit_creating<'a>(
        &self,
        mut batch: Batch,
        topics: impl Iterator<Item = &'a Arc<str>>,
    ) -> Answer<Receipt, CommitError> {
        let known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut made: Vec<&Arc<str>> = Vec::new();
        for topic in topics {
            if known.contains(topic) || made.contains(&topic) || self.store.topic(topic).is_some() {
                continue;
            }
            made.push(topic);
            batch.change(Change::PutTopic {
                topic: topic.clone(),
                options: self.default_config(topic).to_options(),
                if_exists: IfExists::Keep,
            });
        }
        let answer = self.store.commit(batch);
        drop(known);
        answer
    }

    /// Makes a topic that something of our own writes to, unless it is there: as the options say of its name, else as
    /// `otherwise` says.
    pub(crate) fn ensure_as(&self, topic: &Arc<str>, otherwise: impl FnOnce() -> TopicConfig) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if self.store.topic(topic).is_none() {
            // What users say of all topics is not meant for those of the bus.
            let configured = self.configured(topic).filter(|_| !is_internal_topic(topic));
            let config = configured.cloned().unwrap_or_else(otherwise);
            let mut batch = Batch::new();
            batch.change(Change::PutTopic {
                topic: topic.clone(),
                options: config.to_options(),
                if_exists: IfExists::Keep,
            });
            drop(self.store.commit(batch));
        }
        known.insert(topic.clone());
    }

    /// Makes or changes a topic. Under the same lock as [`Self::ensure`], so that a first publish at the same moment
    /// does not overwrite it with defaults.
    pub(crate) fn put(
        &self,
        topic: &Arc<str>,
        config: &TopicConfig,
    ) -> Answer<Receipt, CommitError> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut batch = Batch::new();
        batch.change(Change::PutTopic {
            topic: topic.clone(),
            options: config.to_options(),
            if_exists: IfExists::Replace,
        });
        known.insert(topic.clone());
        self.store.commit(batch)
    }

    /// Forgets a topic that turned out not to exist.
    pub(crate) fn forget(&self, topic: &str) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(topic);
    }

    /// Whether a topic exists or would be made by its first publish.
    pub(crate) fn may_exist(&self, topic: &Arc<str>) -> bool {
        self.auto_create || self.named(topic).known || self.store.topic(topic).is_some()
    }

    /// What a topic without a configuration of its own looks like.
    pub(crate) fn default_config(&self, topic: &str) -> TopicConfig {
        self.configured(topic).cloned().unwrap_or_default()
    }

    fn configured(&self, topic: &str) -> Option<&TopicConfig> {
        let mut defaults = self.defaults.iter();
        let found = defaults.find(|(pattern, _)| pattern.matches(topic));
        found.map(|(_, config)| config)
    }
}
