//! How commands of a subscription reach the owner of a topic's group: the one that serves it, or where a pattern is followed
//! and no owner serves its topic now, one that is started for the command.

use super::Shared;
use crate::error::{AckPublishError, SettleError};
use crate::group::command::{AckPublishByIds, Asker, Command, SettleByIds, Settlement};
use crate::group::inbox::AckPublishResult;
use crate::group::registry::{GroupName, Registry};
use crate::group::state::MemberId;
use crate::group::subscriber::Subscriber;
use std::sync::{Arc, Weak};
use tokio::sync::{mpsc, oneshot};

pub(super) enum Route {
    Member(MemberId, Option<mpsc::Sender<Command>>),
    Group(Weak<Registry>, GroupName, Arc<Subscriber>),
}

impl Shared {
    /// The way to the group of a topic, `None` where the subscription has nothing to do with it.
    pub(super) fn route(&self, topic: &str) -> Option<Route> {
        let memberships = self.memberships();
        let membership = memberships.get(topic);
        let is_followed = self.follows(topic);
        match membership.filter(|one| !is_followed || !one.inbox.is_closed()) {
            Some(one) => Some(Route::Member(one.member, one.commands.upgrade())),
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
    pub(super) async fn settle(
        self,
        ids: Vec<String>,
        what: Settlement,
    ) -> Vec<Result<(), SettleError>> {
        let count = ids.len();
        let by_ids = SettleByIds {
            asker: self.asker(),
            ids,
            what,
        };
        let (reply, answer) = oneshot::channel();
        self.send(Command::Settle(by_ids, reply)).await;
        let gone = |_| vec![Err(SettleError::Gone); count];
        answer.await.unwrap_or_else(gone)
    }

    /// Sends steps to the owner, all at once, with one result for each. One that is refused already is not sent.
    pub(super) async fn ack_publishes(
        self,
        ack_publishes: Vec<Result<AckPublishByIds, AckPublishError>>,
    ) -> Vec<AckPublishResult> {
        let (mut sent, mut answers) = (Vec::new(), Vec::with_capacity(ack_publishes.len()));
        for ack_publish in ack_publishes {
            answers.push(ack_publish.map(|ack_publish| {
                let (reply, answer) = oneshot::channel();
                sent.push((ack_publish, reply));
                answer
            }));
        }
        let command = Command::AckPublish(self.asker(), sent);
        self.send(command).await;
        let mut results = Vec::with_capacity(answers.len());
        for answer in answers {
            results.push(match answer {
                // An owner that is gone lets go of the replies, which says so.
                Ok(answer) => answer.await.unwrap_or(Err(AckPublishError::Gone)),
                Err(error) => Err(error),
            });
        }
        results
    }

    fn asker(&self) -> Asker {
        match self {
            Self::Member(member, _) => Asker::Member(*member),
            Self::Group(_, _, subscriber) => Asker::Follower(subscriber.clone()),
        }
    }

    /// Sends a command. One that cannot be sent is dropped, and with it its reply.
    async fn send(self, command: Command) {
        match self {
            Self::Member(_, Some(commands)) => drop(commands.send(command).await),
            Self::Member(_, None) => {}
            Self::Group(registry, name, _) => {
                if let Some(registry) = registry.upgrade() {
                    registry.send(&name, command).await;
                }
            }
        }
    }
}
