//! How a subscription comes to be: its topics are named or matched, and it takes a seat in the group of each.

use super::fan_in::{Follower, Selection};
use super::{Shared, SubscribeOptions, Subscription, SubscriptionControl};
use crate::core::Core;
use crate::error::{BadOption, GroupError, SubscribeError, UnknownTopic};
use crate::group::StartAt;
use crate::group::command::{Command, Join, OfPattern};
use crate::group::credit::Credit;
use crate::group::registry::{GroupName, Registry};
use crate::group::seat::Seat;
use crate::group::settings::SettingsRequest;
use crate::group::subscriber::Subscriber;
use crate::names::check_group;
use prombus_store::MovedTopics;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// How many topics of a pattern are looked at before the subscription is there; the others are while it is used.
const JOINED_AT_ONCE: usize = 64;

/// Who wants to subscribe to what.
pub(super) struct Subscribing {
    pub(super) group: Arc<str>,
    pub(super) ephemeral: bool,
    pub(super) options: SubscribeOptions,
    pub(super) subscriber: Arc<Subscriber>,
}

/// Subscribes; without a group the subscription is ephemeral.
pub(crate) async fn subscribe(
    core: &Arc<Core>,
    registry: &Arc<Registry>,
    topic: &str,
    group: Option<&str>,
    options: SubscribeOptions,
) -> Result<Subscription, SubscribeError> {
    options.check()?;
    let mut selection = Selection::new(topic, &options.topics)?;
    let is_one = selection.patterns.is_empty() && selection.names.len() == 1;
    if matches!(options.from, StartAt::AfterId(_)) && !is_one {
        let why = "an id lies in one topic, and this subscription has several";
        return Err(BadOption::new("afterId", why).into());
    }
    let number = core.number();
    let ephemeral = group.is_none();
    let group: Arc<str> = match group {
        Some(group) => {
            check_group(group)?;
            group.into()
        }
        None => format!("ephemeral:{:x}-{number}", core.now_ms()).into(),
    };
    for topic in &selection.names {
        if !core.topics.may_exist(topic) {
            let topic = topic.clone();
            return Err(UnknownTopic { topic }.into());
        }
    }
    let name = match &options.member {
        Some(name) => name.as_str().into(),
        None => format!("member-{number}").into(),
    };
    let subscriber = Arc::new(Subscriber::new(
        name,
        options.batch_size,
        Credit::new(
            options.max_in_flight,
            core.options.subscription_bytes,
            core.memory.clone(),
        ),
        !selection.patterns.is_empty(),
        core.options.clock.clone(),
    ));
    // Watched before the topics are listed, so that none is missed in between.
    let moved = (!selection.patterns.is_empty()).then(|| core.store.watch_moved());
    let subscription = Subscription {
        control: SubscriptionControl {
            shared: Arc::new(Shared {
                group: group.clone(),
                subscriber: subscriber.clone(),
                seats: Mutex::default(),
                follower: Mutex::default(),
            }),
        },
    };
    let subscribing = Subscribing {
        group,
        ephemeral,
        options,
        subscriber,
    };
    let shared = &subscription.control.shared;
    for topic in &selection.names {
        let seat = subscribing
            .join(core, registry, topic, &subscribing.options.from)
            .await?;
        shared.seats().insert(topic.clone(), seat);
    }
    if let Some(moved) = moved {
        let (group, options) = (&subscribing.group, &subscribing.options);
        selection.place(core, group, ephemeral, options).await?;
        let follower = Follower {
            core: core.clone(),
            registry: Arc::downgrade(registry),
            shared: Arc::downgrade(shared),
            waiting: selection.matching(&*core.store),
            subscribing,
            selection,
        };
        follow(follower, registry, shared, moved).await?;
    }
    Ok(subscription)
}

/// Joins the first topics of a pattern, so that the caller is told what a group does not allow, and lets the follower go
/// on with the others.
async fn follow(
    mut follower: Follower,
    registry: &Arc<Registry>,
    shared: &Arc<Shared>,
    moved: MovedTopics,
) -> Result<(), SubscribeError> {
    let mut again = BTreeSet::new();
    for _ in 0..JOINED_AT_ONCE {
        let Some(topic) = follower.waiting.pop_first() else {
            break;
        };
        match follower.join(registry, shared, &topic).await {
            // It was deleted meanwhile, and may have been made again.
            Err(GroupError::UnknownTopic(_)) => drop(again.insert(topic)),
            joined => joined?,
        }
    }
    follower.waiting.append(&mut again);
    let subscriber = follower.subscribing.subscriber.clone();
    let followed = (
        follower.subscribing.group.clone(),
        follower.selection.patterns.clone(),
    );
    let task = registry.follow(&subscriber, followed, follower.run(moved));
    *shared.follower() = Some(task);
    Ok(())
}

impl Subscribing {
    /// Takes a seat in the group of one topic.
    pub(super) async fn join(
        &self,
        core: &Core,
        registry: &Registry,
        topic: &Arc<str>,
        start_at: &StartAt,
    ) -> Result<Seat, GroupError> {
        let settings = self.options.settings();
        let place = (start_at, settings, None);
        self.take_seat(core, registry, topic, place).await
    }

    /// The same in a topic of a pattern, whose group is made with what belongs to the pattern's.
    pub(super) async fn join_pattern(
        &self,
        core: &Core,
        registry: &Registry,
        topic: &Arc<str>,
        start_at: &StartAt,
        pattern: &OfPattern,
    ) -> Result<Seat, GroupError> {
        let place = (start_at, self.options.own_settings(), Some(pattern));
        self.take_seat(core, registry, topic, place).await
    }

    async fn take_seat(
        &self,
        core: &Core,
        registry: &Registry,
        topic: &Arc<str>,
        (start_at, settings, pattern): (&StartAt, SettingsRequest, Option<&OfPattern>),
    ) -> Result<Seat, GroupError> {
        let name = GroupName {
            topic: topic.clone(),
            group: self.group.clone(),
            ephemeral: self.ephemeral,
        };
        let join = |reply| {
            let join = Join {
                member: core.number(),
                subscriber: self.subscriber.clone(),
                start_at: start_at.clone(),
                settings: settings.clone(),
                pattern: pattern.cloned(),
            };
            Command::Join(Box::new(join), reply)
        };
        registry.ask(&name, join).await
    }
}
