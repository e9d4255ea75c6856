//! Subscribing: resolves the topics by name or pattern, and joins the group of each.

use super::fan_in::{Follower, Selection};
use super::options::{check, own_settings, settings};
use super::topic_queue::TopicQueue;
use super::{Shared, SubscribeOptions, Subscription, SubscriptionControl};
use crate::core::Core;
use crate::error::{GroupError, InvalidField, InvalidGroup, SubscribeError, UnknownTopic};
use crate::group::command::{Command, Join, PatternDefaults};
use crate::group::credit::Credit;
use crate::group::inbox::Inbox;
use crate::group::membership::Membership;
use crate::group::registry::{GroupName, Registry};
use crate::group::settings::SettingsRequest;
use crate::group::subscriber::Subscriber;
use crate::schemas::{self, Upcaster};
use prombus_interface::StartAt;
use prombus_interface::names::check_group;
use prombus_store::TailAdvances;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// How many topics of a pattern are looked at before the subscription is there; the others are while it is used.
const JOINED_EAGERLY: usize = 64;

/// Who wants to subscribe to what.
pub(super) struct SubscribeRequest {
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
    mut options: SubscribeOptions,
) -> Result<Subscription, SubscribeError> {
    let shadow = core.shadows.named(topic, group).map_err(GroupError::from)?;
    if let Some(shadow) = &shadow {
        shadow.complete(&mut options);
    }
    check(&options)?;
    let mut selection = select(core, topic, &options)?;
    let number = core.number();
    let ephemeral = group.is_none() || shadow.is_some();
    let group = group_name(core, group, number)?;
    let upcaster = upcaster(core, &selection, &options).await?;
    let subscriber = new_subscriber(core, &options, number, !selection.patterns.is_empty());
    // Watched before the topics are listed, so that none is missed in between.
    let moved = (!selection.patterns.is_empty()).then(|| core.store.watch_tails());
    let subscription = Subscription {
        control: SubscriptionControl {
            shared: Arc::new(Shared {
                group: group.clone(),
                ephemeral,
                patterns: selection.patterns.clone(),
                registry: Arc::downgrade(registry),
                turn: Arc::new(Inbox::new(core.options.group_bytes)),
                ack_timeout_ms: Mutex::default(),
                subscriber: subscriber.clone(),
                memberships: Mutex::default(),
                is_shadow: shadow.is_some(),
                upcaster,
                follower: Mutex::default(),
            }),
        },
    };
    let request = SubscribeRequest {
        group,
        ephemeral,
        options,
        subscriber,
    };
    let shared = &subscription.control.shared;
    for topic in &selection.names {
        let membership = request
            .join(core, registry, topic, &request.options.from)
            .await?;
        shared.add_membership(topic, membership);
    }
    if let Some(moved) = moved {
        let (group, options) = (&request.group, &request.options);
        selection
            .resolve_starts(core, group, ephemeral, options)
            .await?;
        let mut follower = Follower {
            core: core.clone(),
            registry: Arc::downgrade(registry),
            shared: Arc::downgrade(shared),
            turn: shared.turn.clone(),
            waiting: TopicQueue::default(),
            failed: Vec::new(),
            dormant: HashMap::new(),
            request,
            selection,
        };
        follower.queue_all();
        follow(follower, registry, shared, moved).await?;
    }
    Ok(subscription)
}

/// The group's name, or one for a subscription without a group.
fn group_name(core: &Core, group: Option<&str>, number: u64) -> Result<Arc<str>, InvalidGroup> {
    match group {
        Some(group) => check_group(group).map(|()| group.into()),
        None => Ok(format!("ephemeral:{:x}-{number}", core.now_ms()).into()),
    }
}

/// What is done to events of earlier versions, with the schemas that it needs.
async fn upcaster(
    core: &Arc<Core>,
    selection: &Selection,
    options: &SubscribeOptions,
) -> Result<Option<Upcaster>, GroupError> {
    if options.upcast {
        for topic in &selection.names {
            schemas::load(core, topic).await?;
        }
    }
    let function = options.extras.upcast_with.clone();
    Ok(Upcaster::new(core, options.upcast, function))
}

/// The topics that are asked for, where they may exist.
fn select(
    core: &Core,
    topic: &str,
    options: &SubscribeOptions,
) -> Result<Selection, SubscribeError> {
    let selection = Selection::new(topic, &options.topics)?;
    let is_one = selection.patterns.is_empty() && selection.names.len() == 1;
    if matches!(options.from, StartAt::AfterId(_)) && !is_one {
        let reason = "an id names an event of one topic, and the subscription has several";
        return Err(InvalidField::new("after_id", reason).into());
    }
    let mut names = selection.names.iter();
    match names.find(|topic| !core.topics.may_exist(topic)) {
        Some(topic) => Err(UnknownTopic {
            topic: topic.clone(),
        }
        .into()),
        None => Ok(selection),
    }
}

fn new_subscriber(
    core: &Core,
    options: &SubscribeOptions,
    number: u64,
    follows_pattern: bool,
) -> Arc<Subscriber> {
    let name = match &options.extras.member {
        Some(name) => name.as_str().into(),
        None => format!("member-{number}").into(),
    };
    Arc::new(Subscriber::new(
        name,
        options.batch_size,
        Credit::new(
            options.max_in_flight,
            core.options.subscription_bytes,
            core.memory.clone(),
        ),
        follows_pattern,
        core.options.clock.clone(),
    ))
}

/// Joins the first topics of a pattern, so that the caller gets the errors of its groups, and lets the follower go
/// on with the others.
async fn follow(
    mut follower: Follower,
    registry: &Arc<Registry>,
    shared: &Arc<Shared>,
    moved: TailAdvances,
) -> Result<(), SubscribeError> {
    for _ in 0..JOINED_EAGERLY.min(follower.core.options.pattern_topics) {
        let Some(topic) = follower.waiting.pop() else {
            break;
        };
        match follower.join(registry, shared, &topic).await {
            // It was deleted meanwhile, and may have been made again; or another node serves it, and the next topic may be
            // nobody's.
            Err(GroupError::UnknownTopic(_) | GroupError::OwnedElsewhere(_)) => {
                follower.failed.push(topic);
            }
            joined => joined?,
        }
    }
    let subscriber = follower.request.subscriber.clone();
    let followed = (
        follower.request.group.clone(),
        follower.selection.patterns.clone(),
    );
    let task = registry.follow(&subscriber, followed, follower.run(moved));
    *shared.follower() = Some(task);
    Ok(())
}

impl SubscribeRequest {
    /// Joins the group of one topic.
    pub(super) async fn join(
        &self,
        core: &Core,
        registry: &Registry,
        topic: &Arc<str>,
        start_at: &StartAt,
    ) -> Result<Membership, GroupError> {
        let settings = settings(&self.options);
        let place = (start_at, settings, None);
        self.join_group(core, registry, topic, place).await
    }

    /// The same in a topic of a pattern, whose group is made with what belongs to the pattern's.
    pub(super) async fn join_pattern(
        &self,
        core: &Core,
        registry: &Registry,
        topic: &Arc<str>,
        start_at: &StartAt,
        pattern: &PatternDefaults,
    ) -> Result<Membership, GroupError> {
        let place = (start_at, own_settings(&self.options), Some(pattern));
        self.join_group(core, registry, topic, place).await
    }

    async fn join_group(
        &self,
        core: &Core,
        registry: &Registry,
        topic: &Arc<str>,
        (start_at, settings, pattern): (&StartAt, SettingsRequest, Option<&PatternDefaults>),
    ) -> Result<Membership, GroupError> {
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
                via: None,
                held: Vec::new(),
                replaces: None,
            };
            Command::Join(Box::new(join), reply)
        };
        registry.call(&name, join).await
    }
}
