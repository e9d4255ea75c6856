//! How a subscription comes to be: its topics are named or matched, and it takes a seat in the group of each.

use super::fan_in::{Selection, follow};
use super::{Shared, SubscribeOptions, Subscription, SubscriptionControl};
use crate::core::Core;
use crate::error::{BadOption, GroupError, SubscribeError, UnknownTopic};
use crate::group::StartAt;
use crate::group::command::{Command, Join};
use crate::group::credit::Credit;
use crate::group::registry::{GroupName, Registry};
use crate::group::seat::Seat;
use crate::group::subscriber::Subscriber;
use crate::names::check_group;
use std::sync::{Arc, Mutex};

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
    let selection = Selection::new(topic, &options.topics)?;
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
    let watch = core.store.watch_topics();
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
    for topic in selection.topics_now(&*core.store) {
        let seat = subscribing
            .join(core, registry, &topic, &subscribing.options.from)
            .await?;
        shared.seats().insert(topic, seat);
    }
    if !selection.patterns.is_empty() {
        let shared_weakly = Arc::downgrade(shared);
        let registry_weakly = Arc::downgrade(registry);
        let subscriber = subscribing.subscriber.clone();
        let following = follow(
            core.clone(),
            registry_weakly,
            shared_weakly,
            subscribing,
            selection,
            watch,
        );
        *shared.follower() = Some(registry.follow(&subscriber, following));
    }
    Ok(subscription)
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
                settings: self.options.settings(),
            };
            Command::Join(Box::new(join), reply)
        };
        registry.ask(&name, join).await
    }
}
