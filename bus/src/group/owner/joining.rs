//! How a group comes to be, how subscriptions become its members, and how they go.

use super::{Existence, Member, Owner, rules};
use crate::error::{GroupError, StoreFailed, TakenOver};
use crate::filter::Filter;
use crate::group::command::Join;
use crate::group::record::{GroupRecord, record_key};
use crate::group::seat::Seat;
use crate::group::state::{GroupState, MemberId};
use prombus_store::{Batch, Change, CommitError, Expect};

impl Owner {
    /// Reads what is stored of the group.
    pub(super) async fn load(&mut self) -> Result<(), GroupError> {
        if self.name.ephemeral {
            return Ok(());
        }
        let key = record_key(&self.name.topic, &self.name.group);
        let Some(stored) = self.core.store.get(&key).await? else {
            return Ok(());
        };
        let record = GroupRecord::from_bytes(&stored.value).map_err(|why| GroupError::Damaged {
            topic: self.name.topic.clone(),
            group: self.name.group.clone(),
            why: why.into(),
        })?;
        let counts = *self.state.counts();
        let rules = rules(&self.core, &self.name);
        self.state = GroupState::from_record(record, rules, self.core.now_ms());
        self.state.resume_counts(counts);
        self.filter = self.stored_filter();
        self.existence = Existence::Stored {
            version: stored.version,
        };
        Ok(())
    }

    /// Makes a subscription a member, and the group itself where there is none.
    pub(super) async fn join(&mut self, join: Join) -> Result<Seat, GroupError> {
        let commands = self.link().ok_or(GroupError::Closed)?;
        if self.existence == Existence::Absent {
            self.create(&join).await?;
        } else if self.state.settings_mut().apply(&join.settings) {
            self.state.touch();
        }
        match join.settings.filter {
            Some(filter) => self.filter = filter,
            // A function is gone with those who brought it.
            None if self.members.is_empty() => self.filter = self.stored_filter(),
            None => {}
        }
        self.state.join(join.member, join.subscriber.name.clone());
        join.subscriber.begin_part();
        self.members.push(Member {
            id: join.member,
            subscriber: join.subscriber,
        });
        Ok(Seat {
            inbox: self.inbox.clone(),
            member: join.member,
            commands,
        })
    }

    /// Lets a member go: others get what it held at once, and what it never looked at does not count.
    pub(super) fn dismiss(&mut self, member: MemberId, reason: &str, now_ms: u64) {
        let Some(at) = self.members.iter().position(|other| other.id == member) else {
            return;
        };
        let subscriber = self.members.remove(at).subscriber;
        self.reservations.retain(|one| one.member != member);
        let untaken = subscriber.take_back(member, |_| true);
        self.state.give_back(member, &untaken);
        let held = self.state.held_by(member);
        self.state.take_freed(|freed_by, count| {
            if freed_by == member {
                subscriber.credit.give(count, &self.inbox);
            }
        });
        subscriber.credit.give(held, &self.inbox);
        subscriber.credit.leave(&self.inbox);
        self.state.leave(member, reason, now_ms);
    }

    async fn create(&mut self, join: &Join) -> Result<(), GroupError> {
        let cursor = join.start_at.cursor(&self.core, &self.name.topic).await?;
        let counts = *self.state.counts();
        let rules = rules(&self.core, &self.name);
        let mut state = GroupState::new(rules, cursor, self.core.now_ms());
        state.settings_mut().apply(&join.settings);
        state.resume_counts(counts);
        self.existence = if self.name.ephemeral {
            Existence::Ephemeral
        } else {
            let mut batch = Batch::new();
            batch.change(Change::Put {
                key: record_key(&self.name.topic, &self.name.group),
                value: state.to_record(&[]).to_bytes(),
                expect: Expect::Absent,
            });
            let receipt = self.core.store.commit(batch).await;
            let receipt = receipt.map_err(|error| self.not_written(error))?;
            Existence::Stored {
                version: receipt.versions.first().copied().unwrap_or_default(),
            }
        };
        self.state = state;
        self.is_clean_at(self.state.changes());
        Ok(())
    }

    pub(super) fn not_written(&self, error: CommitError) -> GroupError {
        match error {
            CommitError::StoreFailed(error) => error.into(),
            CommitError::Closed => GroupError::Closed,
            CommitError::VersionMismatch(_) => TakenOver {
                topic: self.name.topic.clone(),
                group: self.name.group.clone(),
            }
            .into(),
            CommitError::UnknownTopic(_)
            | CommitError::IdConflict(_)
            | CommitError::LimitReached(_) => StoreFailed {
                cause: error.to_string().into(),
            }
            .into(),
        }
    }

    fn stored_filter(&self) -> Filter {
        match &self.state.settings().filter {
            Some(fields) => Filter::Fields(fields.clone()),
            None => Filter::All,
        }
    }
}
