//! How commands of a subscription reach the owner of a topic's group: the one that serves it, or where a pattern is followed
//! and no owner serves its topic now, one that is started for the command.

use super::ack_publish::gone;
use super::{AckPublishesFuture, SettleFuture, Shared, all_gone};
use crate::error::AckPublishError;
use crate::group::command::{AckPublishByIds, Asker, Command, SettleByIds};
use crate::group::inbox::Inbox;
use crate::group::registry::{GroupName, Registry};
use crate::group::state::MemberId;
use crate::group::subscriber::Subscriber;
use crate::pending::{Pending, PendingAll};
use prombus_interface::SettleOp;
use std::sync::{Arc, Weak};

pub(super) enum Route {
    Member(MemberId, Arc<Inbox>),
    Group(Weak<Registry>, GroupName, Arc<Subscriber>),
}

impl Shared {
    /// The way to the group of a topic, `None` where the subscription has nothing to do with it.
    pub(super) fn route(&self, topic: &str) -> Option<Route> {
        let memberships = self.memberships();
        let membership = memberships.get(topic);
        let is_followed = self.follows(topic);
        match membership.filter(|one| !is_followed || !one.inbox.is_closed()) {
            Some(one) => Some(Route::Member(one.member, one.inbox.clone())),
            None if is_followed => {
                let name = GroupName {
                    topic: topic.into(),
                    group: self.group.clone(),
                    ephemeral: self.ephemeral,
                };
                let subscriber = self.subscriber.clone();
                Some(Route::Group(self.registry.clone(), name, subscriber))
            }
            None => None,
        }
    }

    /// Whether a pattern of the subscription matches a topic.
    pub(super) fn follows(&self, topic: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(topic))
    }
}

impl Route {
    /// Settles or extends events by their ids, with one result for each.
    pub(super) fn settle(self, ids: Vec<String>, op: SettleOp) -> SettleFuture {
        let (reply, pending) = Pending::channel(ids.len(), all_gone);
        let asker = self.asker();
        self.send(Command::Settle(SettleByIds { asker, ids, op }, reply));
        pending
    }

    /// Sends transactions to the owner, all at once, with one result for each. One that is invalid is not sent.
    pub(super) fn ack_publishes(
        self,
        ack_publishes: Vec<Result<AckPublishByIds, AckPublishError>>,
    ) -> AckPublishesFuture {
        let mut sent = Vec::new();
        let pending = ack_publishes
            .into_iter()
            .map(|ack_publish| match ack_publish {
                Ok(ack_publish) => {
                    let (reply, pending) = Pending::channel(1, gone);
                    sent.push((ack_publish, reply));
                    pending
                }
                Err(error) => Pending::known(Err(error)),
            });
        let pending = pending.collect();
        let asker = self.asker();
        self.send(Command::AckPublish(asker, sent));
        PendingAll::new(pending)
    }

    fn asker(&self) -> Asker {
        match self {
            Self::Member(member, _) => Asker::Member(*member),
            Self::Group(_, _, subscriber) => Asker::Follower(subscriber.clone()),
        }
    }

    /// Sends a command. One that cannot be sent is dropped, and with it its reply.
    fn send(self, command: Command) {
        match self {
            Self::Member(_, inbox) => drop(inbox.push_command(Box::new(command))),
            Self::Group(registry, name, _) => {
                if let Some(registry) = registry.upgrade() {
                    registry.send(&name, command);
                }
            }
        }
    }
}
