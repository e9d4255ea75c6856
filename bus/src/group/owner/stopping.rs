//! How an owner ends: because nobody needs it, because the bus closes, or because the group is not its any more.

use super::{Existence, Owner, Stop};
use crate::error::{GroupError, StepError, UnknownGroup};
use crate::group::command::Command;
use crate::group::record::record_key;
use crate::group::subscriber::Ended;
use prombus_store::{Batch, Change, Expect};
use tokio::sync::mpsc::WeakSender;

impl Owner {
    /// Whether nobody needs it and everything is written.
    pub(super) fn is_idle(&self) -> bool {
        self.members.is_empty() && self.is_written()
    }

    /// Goes off the list, unless someone has just asked for something.
    pub(super) fn retire(&mut self) -> bool {
        match self.registry.upgrade() {
            Some(registry) => registry.retire(&self.name, *self.state.counts(), &mut self.commands),
            None => true,
        }
    }

    /// Ends the service.
    pub(super) async fn stop(mut self, stop: Stop) {
        let now_ms = self.now_ms();
        self.take_messages(now_ms);
        if self.is_writing_steps() {
            // They happen or not whatever becomes of this owner, and whoever waits for them has to hear which.
            self.finish_write().await;
        }
        let reason = match stop {
            Stop::Closing => Ended::BusClosed,
            Stop::Abandoning(reason) => {
                self.core.unwritten.settled(&self.name);
                reason
            }
        };
        self.reservations.clear();
        let mut ending = Vec::with_capacity(self.members.len());
        for member in std::mem::take(&mut self.members) {
            let untaken = member.subscriber.take_back(member.id, |_| true);
            self.state.give_back(member.id, &untaken);
            // Leases that are open stay open in the record, so that whoever serves the group next counts them.
            let held = self.state.held_by(member.id) + untaken.len();
            member.subscriber.credit.give(held, &self.inbox);
            member.subscriber.credit.leave(&self.inbox);
            ending.push(member.subscriber);
        }
        self.inbox.close();
        for subscriber in ending {
            subscriber.end_part(reason);
        }
        if let Stop::Closing = stop {
            self.finish_steps().await;
            self.finish_writing().await;
        }
        self.refuse_steps(&StepError::Gone);
        if let Some(registry) = self.registry.upgrade() {
            registry.remove(&self.name, *self.state.counts(), &mut self.commands);
        }
        match stop {
            Stop::Closing => self.refuse_all(&GroupError::Closed).await,
            // Commands that wait are let go unanswered, and whoever asked asks the next owner.
            Stop::Abandoning(_) => {}
        }
    }

    /// Refuses all commands, now and from now on.
    pub(super) async fn refuse_all(mut self, error: &GroupError) {
        if let Some(registry) = self.registry.upgrade() {
            registry.remove(&self.name, *self.state.counts(), &mut self.commands);
        }
        self.commands.close();
        while let Some(command) = self.commands.recv().await {
            command.refuse(error);
        }
    }

    /// Removes what is stored of the group.
    pub(super) async fn remove(&mut self) -> Result<(), GroupError> {
        if self.existence == Existence::Absent {
            return Err(self.unknown());
        }
        self.finish_write().await;
        if let Existence::Stored { version } = self.existence {
            let mut batch = Batch::new();
            batch.change(Change::Delete {
                key: record_key(&self.name.topic, &self.name.group),
                expect: Expect::Version(version),
            });
            let committed = self.core.store.commit(batch).await;
            committed.map_err(|error| self.not_written(error))?;
        }
        Ok(())
    }

    pub(super) fn unknown(&self) -> GroupError {
        UnknownGroup {
            topic: self.name.topic.clone(),
            group: self.name.group.clone(),
        }
        .into()
    }

    /// How members reach this owner.
    pub(super) fn link(&self) -> Option<WeakSender<Command>> {
        self.registry.upgrade()?.link(&self.name)
    }

    /// Waits for the write under way and writes once more what it does not hold. What fails now is lost with the
    /// bus, and delivered again.
    async fn finish_writing(&mut self) {
        for _ in 0..2 {
            if self.writing.is_none() {
                if self.is_clean() {
                    return;
                }
                self.flush();
            }
            if self.finish_write().await.is_some() {
                return;
            }
        }
    }
}
