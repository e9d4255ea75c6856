//! How an owner stops: because it is idle, because the bus closes, or because the group is no longer its own.

use super::{Existence, Owner, Stop};
use crate::error::{AckPublishError, GroupError, UnknownGroup};
use crate::group::inbox::Message;
use crate::group::record::record_key;
use crate::group::subscriber::Ended;
use prombus_store::{Batch, Change, Expect};

impl Owner {
    /// Whether it has no members and everything is written.
    fn is_idle(&self) -> bool {
        self.members.is_empty() && self.is_written()
    }

    /// Ends the service where it has nothing to do, and says whether it did.
    pub(super) async fn retire_if_idle(&mut self) -> bool {
        self.is_idle() && self.release_ownership().await && self.retire()
    }

    /// Goes off the list, unless someone has just asked for something.
    pub(super) fn retire(&mut self) -> bool {
        match self.registry.upgrade() {
            Some(registry) => registry.retire(&self.name, &self.inbox),
            None => true,
        }
    }

    /// Ends the service.
    pub(super) async fn stop(mut self, stop: Stop) {
        // A group that may be another's by now settles nothing: those who wait for an answer hear that the owner is gone.
        let is_taken_over = matches!(stop, Stop::Abandoning(Ended::TakenOver));
        if !is_taken_over && self.is_ownership_valid() {
            let now_ms = self.now_ms();
            self.handle_last_messages(now_ms);
        }
        if self.is_writing_ack_publishes() {
            // They commit or not regardless of this owner, and the members wait for the outcome.
            self.await_pending_write().await;
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
            let untaken = member.subscriber.reclaim(member.id, |_| true);
            self.state.release(member.id, &untaken);
            // Open leases stay open in the record, so that the next owner counts the deliveries.
            let held = self.state.held_by(member.id) + untaken.len();
            member.subscriber.credit.release(held, &self.inbox);
            member.subscriber.credit.dequeue(&self.inbox);
            ending.push(member.subscriber);
        }
        self.inbox.close();
        for subscriber in ending {
            subscriber.detach_group(&self.name.topic, reason);
        }
        if let Stop::Closing = stop {
            self.finish_ack_publishes().await;
            self.release_with_last_write();
            self.flush_before_stop().await;
        }
        self.fail_ack_publishes(&AckPublishError::Gone);
        self.share_status();
        if let Some(registry) = self.registry.upgrade() {
            let is_stored = !matches!(reason, Ended::TopicDeleted | Ended::GroupRemoved);
            registry.remove(&self.name, is_stored, &self.inbox);
            if reason == Ended::TakenOver {
                registry.outdate_directory();
            }
        }
        match stop {
            Stop::Closing => self.fail_all_commands(&GroupError::Closed),
            // Waiting commands are dropped, and their callers retry with the next owner.
            Stop::Abandoning(_) => {}
        }
    }

    /// Refuses all commands, now and from now on.
    pub(super) fn fail_all_commands(mut self, error: &GroupError) {
        if let Some(registry) = self.registry.upgrade() {
            registry.remove(&self.name, true, &self.inbox);
            registry.outdate_directory();
        }
        self.inbox.delist();
        self.fail_waiting(error);
    }

    /// Fails the commands that wait now; messages of members wait on.
    pub(super) fn fail_waiting(&mut self, error: &GroupError) {
        self.inbox.take(&mut self.messages);
        for message in std::mem::take(&mut self.messages) {
            match message {
                Message::Command(command) => command.fail(error),
                message => self.messages.push_back(message),
            }
        }
    }

    /// Handles the messages of members that wait; commands wait on.
    fn handle_last_messages(&mut self, now_ms: u64) {
        self.inbox.take(&mut self.messages);
        for message in std::mem::take(&mut self.messages) {
            if message.is_command() {
                self.messages.push_back(message);
            } else {
                self.handle_message(message, now_ms);
            }
        }
        self.return_credit();
    }

    /// Removes what is stored of the group.
    pub(super) async fn remove(&mut self) -> Result<(), GroupError> {
        if self.existence == Existence::Absent {
            return Err(self.unknown());
        }
        self.await_pending_write().await;
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

    /// Waits for the write under way and writes once more what it does not hold. What fails now is lost with the
    /// bus, and delivered again.
    async fn flush_before_stop(&mut self) {
        for _ in 0..2 {
            if self.pending_write.is_none() {
                if self.is_clean() {
                    return;
                }
                self.flush();
            }
            if self.await_pending_write().await.is_some() {
                return;
            }
        }
    }
}
