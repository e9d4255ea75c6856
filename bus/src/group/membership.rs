//! A subscription's place in one group. Letting go of it frees its leases at once.

use super::command::{AckPublishByIds, Command, SettleByIds, Settlement};
use super::inbox::{AckPublishResult, Inbox, Message};
use super::state::MemberId;
use crate::error::{AckPublishError, SettleError};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A place in a group.
pub(crate) struct Membership {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) member: MemberId,
    /// Weak, so that a subscription does not keep a bus open that everybody else has let go.
    pub(crate) commands: mpsc::WeakSender<Command>,
}

impl Membership {
    /// Settles or extends events by their ids, with one result for each.
    pub(crate) fn settle(
        &self,
        ids: Vec<String>,
        what: Settlement,
    ) -> impl Future<Output = Vec<Result<(), SettleError>>> + Send + 'static + use<> {
        let count = ids.len();
        let by_ids = SettleByIds {
            member: self.member,
            ids,
            what,
        };
        let commands = self.commands.upgrade();
        async move {
            let gone = || vec![Err(SettleError::Gone); count];
            let Some(commands) = commands else {
                return gone();
            };
            let (reply, answer) = oneshot::channel();
            if commands.send(Command::Settle(by_ids, reply)).await.is_err() {
                return gone();
            }
            drop(commands);
            answer.await.unwrap_or_else(|_| gone())
        }
    }

    /// Sends steps to the owner, all at once, with one result for each. One that is refused already is not sent.
    pub(crate) fn ack_publishes(
        &self,
        ack_publishes: Vec<Result<AckPublishByIds, AckPublishError>>,
    ) -> impl Future<Output = Vec<AckPublishResult>> + Send + 'static + use<> {
        let (mut sent, mut answers) = (Vec::new(), Vec::with_capacity(ack_publishes.len()));
        for ack_publish in ack_publishes {
            answers.push(ack_publish.map(|ack_publish| {
                let (reply, answer) = oneshot::channel();
                sent.push((ack_publish, reply));
                answer
            }));
        }
        let ack_publishes = Command::AckPublish(self.member, sent);
        let commands = self.commands.upgrade();
        async move {
            if let Some(commands) = commands {
                // An owner that is gone lets go of the replies, which says so.
                let _ = commands.send(ack_publishes).await;
            } else {
                drop(ack_publishes);
            }
            let mut results = Vec::with_capacity(answers.len());
            for answer in answers {
                results.push(match answer {
                    Ok(answer) => answer.await.unwrap_or(Err(AckPublishError::Gone)),
                    Err(error) => Err(error),
                });
            }
            results
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.inbox.push(Message::Leave(self.member));
    }
}
