//! A subscription's place in one group. Letting go of it frees its leases at once.

use super::command::{Command, SettleByIds, Settlement, StepByIds};
use super::inbox::{Inbox, Message, StepResult};
use super::state::MemberId;
use crate::error::{SettleError, StepError};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A place in a group.
pub(crate) struct Seat {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) member: MemberId,
    /// Weak, so that a subscription does not keep a bus open that everybody else has let go.
    pub(crate) commands: mpsc::WeakSender<Command>,
}

impl Seat {
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
    pub(crate) fn steps(
        &self,
        steps: Vec<Result<StepByIds, StepError>>,
    ) -> impl Future<Output = Vec<StepResult>> + Send + 'static + use<> {
        let (mut sent, mut answers) = (Vec::new(), Vec::with_capacity(steps.len()));
        for step in steps {
            answers.push(step.map(|step| {
                let (reply, answer) = oneshot::channel();
                sent.push((step, reply));
                answer
            }));
        }
        let steps = Command::Steps(self.member, sent);
        let commands = self.commands.upgrade();
        async move {
            if let Some(commands) = commands {
                // An owner that is gone lets go of the replies, which says so.
                let _ = commands.send(steps).await;
            } else {
                drop(steps);
            }
            let mut results = Vec::with_capacity(answers.len());
            for answer in answers {
                results.push(match answer {
                    Ok(answer) => answer.await.unwrap_or(Err(StepError::Gone)),
                    Err(error) => Err(error),
                });
            }
            results
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.inbox.push(Message::Leave(self.member));
    }
}
