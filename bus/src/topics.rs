//! Which topics exist, remembered so that publishing does not have to ask the store, and how new ones are made.

use crate::error::InvalidTopic;
use crate::topic::{PublishTraits, TopicConfig};
use foldhash::HashMap;
use prombus_interface::Pattern;
use prombus_interface::names::{check_topic, is_internal_topic};
use prombus_store::RwLockExt;
use prombus_store::{
    Answer, Batch, Change, CommitError, IfExists, Receipt, Store, TopicsWatch, UnknownTopic,
};
use std::sync::{Arc, RwLock};

/// The most names that are remembered; beyond it the memory starts afresh.
const MAX_KNOWN_TOPICS: usize = 65_536;

/// The bus's memory of topics.
pub(crate) struct Topics {
    store: Arc<dyn Store>,
    auto_create: bool,
    defaults: Vec<(Pattern, TopicConfig)>,
    /// Topics that exist, or whose making is on its way to the store ahead of whatever is committed next.
    known: RwLock<HashMap<Arc<str>, Known>>,
    /// Tells when what is known of topics has to be asked anew.
    watch: TopicsWatch,
}

/// What is remembered of a topic.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    traits: PublishTraits,
    /// The number of changes to topics when that was asked; `None` where it never was.
    as_of: Option<u64>,
}

/// A topic's name, shared, and whether the topic is known to exist.
pub(crate) struct Named {
    pub(crate) topic: Arc<str>,
    pub(crate) known: bool,
    pub(crate) traits: PublishTraits,
}

impl Topics {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        auto_create: bool,
        defaults: Vec<(Pattern, TopicConfig)>,
    ) -> Self {
        Self {
            watch: store.watch_topics(),
            store,
            auto_create,
            defaults,
            known: RwLock::default(),
        }
    }

    /// The shared form of a name of a caller, with what publishing has to know. A known name is valid, any other is checked. The store is
    /// asked only where topics have changed since the last time.
    pub(crate) fn checked(&self, topic: &str) -> Result<Named, InvalidTopic> {
        // Before the store is asked, so that a change in between is noticed the next time.
        let changes = self.watch.changes();
        let known = self.known.read_guard();
        let found = known
            .get_key_value(topic)
            .map(|(name, known)| (name.clone(), *known));
        drop(known);
        let Some((topic, known)) = found else {
            check_topic(topic)?;
            return Ok(Named {
                traits: self.stored_traits(topic).unwrap_or_else(|| PublishTraits {
                    schemas: None,
                    partitions: self.default_config(topic).partitions,
                }),
                topic: topic.into(),
                known: false,
            });
        };
        if is_internal_topic(&topic) {
            check_topic(&topic)?;
        }
        let traits = match known.as_of {
            Some(as_of) if as_of == changes => known.traits,
            _ => self.refreshed(&topic, changes),
        };
        Ok(Named {
            topic,
            known: true,
            traits,
        })
    }

    /// How many partitions a topic has.
    pub(crate) fn partitions(&self, topic: &str) -> Option<u32> {
        self.checked(topic).ok()?.traits.partitions
    }

    fn refreshed(&self, topic: &Arc<str>, changes: u64) -> PublishTraits {
        let stored = self.stored_traits(topic);
        let mut known = self.known.write_guard();
        // One that is on its way to the store is made with what the options say of its name.
        let Some(traits) = stored else {
            return PublishTraits {
                schemas: None,
                partitions: self.default_config(topic).partitions,
            };
        };
        if let Some(known) = known.get_mut(topic) {
            known.traits = traits;
            known.as_of = Some(changes);
        }
        traits
    }

    fn stored_traits(&self, topic: &str) -> Option<PublishTraits> {
        let info = self.store.topic(topic)?;
        Some(PublishTraits::of_attributes(&info.options.attributes))
    }

    /// Makes sure that a topic exists for whatever is committed after this call, and makes it where that is allowed:
    /// by the bus's options, or because it is `needed` whatever they say.
    pub(crate) fn ensure(&self, topic: &Arc<str>, needed: bool) -> Result<(), UnknownTopic> {
        let mut known = self.known.write_guard();
        if known.contains_key(topic) {
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
        known.insert(topic.clone(), Known::default());
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
        let known = self.known.write_guard();
        let mut made: Vec<&Arc<str>> = Vec::new();
        for topic in topics {
            if known.contains_key(topic)
                || made.contains(&topic)
                || self.store.topic(topic).is_some()
            {
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
        let mut known = self.known.write_guard();
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
        known.insert(topic.clone(), Known::default());
    }

    /// Makes or changes a topic. Under the same lock as [`Self::ensure`], so that a first publish at the same moment
    /// does not overwrite it with defaults.
    pub(crate) fn put(
        &self,
        topic: &Arc<str>,
        config: &TopicConfig,
    ) -> Answer<Receipt, CommitError> {
        let schemas = self.stored_traits(topic).and_then(|traits| traits.schemas);
        self.put_with(topic, config, schemas, Batch::new())
    }

    /// The same together with a batch, and with another state of the topic's schemas.
    pub(crate) fn put_with(
        &self,
        topic: &Arc<str>,
        config: &TopicConfig,
        schemas: Option<u64>,
        mut batch: Batch,
    ) -> Answer<Receipt, CommitError> {
        let mut known = self.known.write_guard();
        batch.change(Change::PutTopic {
            topic: topic.clone(),
            options: config.to_options_with(schemas),
            if_exists: IfExists::Replace,
        });
        known.insert(topic.clone(), Known::default());
        self.store.commit(batch)
    }

    /// Forgets a topic that turned out not to exist.
    pub(crate) fn forget(&self, topic: &str) {
        let mut known = self.known.write_guard();
        known.remove(topic);
    }

    /// Whether a topic exists or would be made by its first publish.
    pub(crate) fn may_exist(&self, topic: &Arc<str>) -> bool {
        let known = self.known.read_guard();
        let is_known = known.contains_key(topic);
        drop(known);
        self.auto_create || is_known || self.store.topic(topic).is_some()
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
