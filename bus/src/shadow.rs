//! Shadow groups: throwaway groups that are fed a stretch of a topic at the pace at which it was published, to try a new
//! consumer on real traffic. A shadow is an ephemeral group with a name that several members can join, so nothing of it
//! is stored and its dead letters go nowhere. Its owner sees the topic up to a tail of its own, which the pacer moves.

mod pacer;

use crate::bus::Bus;
use crate::core::Core;
use crate::error::{GroupError, InvalidField, UnknownGroup};
use crate::filter::Filter;
use crate::group::registry::GroupName;
use crate::group::start_at::cursor_at;
use crate::subscription::SubscribeOptions;
use pacer::Pacer;
use prombus_interface::{Ordering, StartAt};
use prombus_store::LockExt;
use prombus_store::{Answer, Page, ReadError, TailWatch, Tails};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::task::AbortHandle;

/// What the names of shadow groups begin with. No other group may have such a name.
pub(crate) const SHADOW_PREFIX: &str = "shadow:";
/// The most shadow groups of one bus.
const MAX_SHADOWS: usize = 64;
/// How long a shadow group lives unless its maker says otherwise.
const DEFAULT_TTL_MS: u64 = 60 * 60 * 1_000;
/// The longest life of a shadow group.
const MAX_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// How much of the name of the original is in that of its shadow.
const MAX_ORIGINAL_BYTES: usize = 96;

/// How fast a shadow group is fed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Pace {
    /// With the time between events that there was when they were published.
    #[default]
    Original,
    /// That much faster than the original.
    Times(f64),
    /// As fast as its members take events.
    Max,
}

/// What a shadow group is fed.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowOptions {
    /// The first event.
    pub from: StartAt,
    /// The last position; none where the group follows the topic.
    pub to: Option<u64>,
    /// How fast.
    pub pace: Pace,
    /// After how long it is removed, also while it has members.
    pub ttl_ms: u64,
}

/// A shadow group that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowGroup {
    /// The topic.
    pub topic: Arc<str>,
    /// The name by which members subscribe.
    pub group: Arc<str>,
    /// The group whose settings it has.
    pub original: Arc<str>,
    /// The first position that it is fed.
    pub from_seq: u64,
    /// The last one; none where it follows the topic.
    pub to_seq: Option<u64>,
    /// After how long it is gone.
    pub ttl_ms: u64,
}

/// The shadow groups of a bus.
#[derive(Default)]
pub(crate) struct Shadows {
    /// By their names.
    all: Mutex<HashMap<Arc<str>, Running>>,
}

struct Running {
    shadow: Arc<Shadow>,
    pacer: AbortHandle,
}

/// A shadow group as its owner and its members need it.
pub(crate) struct Shadow {
    topic: Arc<str>,
    from_seq: u64,
    to_seq: Option<u64>,
    max_attempts: u32,
    ack_timeout_ms: u64,
    ordering: Ordering,
    filter: Option<Filter>,
    tails: Tails,
    /// The position up to which events are due.
    tail: TailWatch,
}

impl Default for ShadowOptions {
    fn default() -> Self {
        Self {
            from: StartAt::Earliest,
            to: None,
            pace: Pace::Original,
            ttl_ms: DEFAULT_TTL_MS,
        }
    }
}

impl ShadowOptions {
    fn check(&self) -> Result<(), InvalidField> {
        self.from.check()?;
        if let Pace::Times(factor) = self.pace
            && !(factor.is_finite() && factor > 0.0)
        {
            return Err(InvalidField::new("pace", "must be a number above 0"));
        }
        if !(1..=MAX_TTL_MS).contains(&self.ttl_ms) {
            return Err(InvalidField::new(
                "ttl",
                "must be above 0 and at most 7 days",
            ));
        }
        Ok(())
    }
}

impl Bus {
    /// Makes a shadow of a group: a throwaway group with the same settings and a cursor of its own. It is gone when its
    /// last member leaves, or after its time to live.
    pub async fn shadow_group(
        &self,
        topic: &str,
        group: &str,
        options: &ShadowOptions,
    ) -> Result<ShadowGroup, GroupError> {
        options.check()?;
        let original = self.group(topic, group).await?;
        let topic = original.topic.clone();
        let from_seq = cursor_at(&options.from, self.core(), &topic).await? + 1;
        if options.to.is_some_and(|to| to < from_seq) {
            let reason = format!("must not be before the first position, {from_seq}");
            return Err(InvalidField::new("to", reason).into());
        }
        let tails = Tails::new();
        let shadow = Arc::new(Shadow {
            from_seq,
            to_seq: options.to,
            max_attempts: original.max_attempts,
            ack_timeout_ms: original.ack_timeout_ms,
            ordering: original.ordering,
            filter: original.filter.map(Filter::Fields),
            tail: tails.watch(&topic, || from_seq - 1),
            tails,
            topic: topic.clone(),
        });
        let name = shadow_name(self.core(), &original.group);
        self.start_shadow(&name, &shadow, options)?;
        Ok(ShadowGroup {
            topic,
            group: name,
            original: original.group,
            from_seq,
            to_seq: options.to,
            ttl_ms: options.ttl_ms,
        })
    }

    fn start_shadow(
        &self,
        name: &Arc<str>,
        shadow: &Arc<Shadow>,
        options: &ShadowOptions,
    ) -> Result<(), InvalidField> {
        let core = self.core();
        let mut all = core.shadows.lock();
        if all.len() >= MAX_SHADOWS {
            let reason = format!("there are {MAX_SHADOWS} shadow groups (max_shadows)");
            return Err(InvalidField::new("group", reason));
        }
        let pacer = Pacer {
            store: core.store.clone(),
            clock: core.options.clock.clone(),
            registry: Arc::downgrade(self.registry()),
            core: Arc::downgrade(core),
            name: GroupName {
                topic: shadow.topic.clone(),
                group: name.clone(),
                ephemeral: true,
            },
            shadow: shadow.clone(),
            pace: options.pace,
            ttl_ms: options.ttl_ms,
        };
        let pacer = self.registry().spawn(pacer.run(core.closing()));
        let shadow = shadow.clone();
        all.insert(name.clone(), Running { shadow, pacer });
        Ok(())
    }
}

fn shadow_name(core: &Core, original: &str) -> Arc<str> {
    // Names of groups are ASCII.
    let original = original.get(..MAX_ORIGINAL_BYTES).unwrap_or(original);
    format!(
        "{SHADOW_PREFIX}{original}:{:x}-{}",
        core.now_ms(),
        core.number()
    )
    .into()
}

impl Shadows {
    /// The shadow group that a subscription names; `None` where it names another group. A name that only shadows have
    /// and that is none, or is one of another topic, is unknown.
    pub(crate) fn named(
        &self,
        topic: &str,
        group: Option<&str>,
    ) -> Result<Option<Arc<Shadow>>, UnknownGroup> {
        let Some(group) = group.filter(|group| group.starts_with(SHADOW_PREFIX)) else {
            return Ok(None);
        };
        let found = self.get(group).filter(|shadow| &*shadow.topic == topic);
        found.map(Some).ok_or_else(|| UnknownGroup {
            topic: topic.into(),
            group: group.into(),
        })
    }

    /// The tail that the owner of a shadow group sees.
    pub(crate) fn tail(&self, name: &GroupName) -> Option<TailWatch> {
        let shadow = self.get(&name.group).filter(|_| name.ephemeral)?;
        Some(shadow.tail.clone())
    }

    /// What a read brings, without what a shadow group is not to see yet.
    pub(crate) fn clipped(
        &self,
        name: &GroupName,
        answer: Answer<Page, ReadError>,
    ) -> Answer<Page, ReadError> {
        let Some(tail) = name.ephemeral.then(|| self.tail(name)).flatten() else {
            return answer;
        };
        Box::pin(async move {
            let mut page = answer.await?;
            let last = tail.current();
            page.events.retain(|event| event.seq() <= last);
            page.next_seq = page.next_seq.min(last + 1);
            Ok(page)
        })
    }

    /// The group is gone.
    pub(crate) fn remove(&self, group: &str) {
        let removed = self.lock().remove(group);
        if let Some(running) = removed {
            running.pacer.abort();
        }
    }

    fn get(&self, group: &str) -> Option<Arc<Shadow>> {
        let all = self.lock();
        all.get(group).map(|running| running.shadow.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Running>> {
        self.all.guard()
    }
}

impl Drop for Shadows {
    fn drop(&mut self) {
        for running in self.lock().values() {
            running.pacer.abort();
        }
    }
}

impl Shadow {
    /// What a member asks for, with what the group decides where it says nothing.
    pub(crate) fn complete(&self, options: &mut SubscribeOptions) {
        options.from = StartAt::Seq(self.from_seq);
        options.max_attempts.get_or_insert(self.max_attempts);
        options.ack_timeout_ms.get_or_insert(self.ack_timeout_ms);
        options.ordering.get_or_insert(self.ordering);
        if options.filter.is_none() {
            options.filter.clone_from(&self.filter);
        }
    }
}
