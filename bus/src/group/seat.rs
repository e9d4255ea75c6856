//! A subscription's place in one group. Letting go of it frees its leases at once.

use super::command::{Command, SettleByIds, Settlement, StepByIds};
use super::inbox::{Inbox, Message};
use super::state::MemberId;
use crate::error::{SettleError, StepError};
use crate::publish::{Published, WholeBatch};
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

    /// Acknowledges events by their ids in one step with publishing others.
    pub(crate) fn step(
        &self,
        ids: Vec<String>,
        events: WholeBatch,
    ) -> impl Future<Output = Result<Vec<Published>, StepError>> + Send + 'static + use<> {
        let by_ids = StepByIds {
            member: self.member,
            ids,
            events,
        };
        let commands = self.commands.upgrade();
        async move {
            let commands = commands.ok_or(StepError::Gone)?;
            let (reply, answer) = oneshot::channel();
            let sent = commands.send(Command::Step(by_ids, reply)).await;
            drop(commands);
            sent.map_err(|_| StepError::Gone)?;
            answer.await.unwrap_or(Err(StepError::Gone))
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.inbox.push(Message::Leave(self.member));
    }
}
