//! Membership: loading and creating the group, and members that join and leave.

use super::incarnation::resolve_position;
use super::ownership::Free;
use super::{Existence, Member, Owner, rules};
use crate::error::{GroupError, GroupMismatch, InvalidField, StoreFailed, TakenOver, UnknownTopic};
use crate::filter::Filter;
use crate::group::command::Join;
use crate::group::membership::Membership;
use crate::group::ownership::Claim;
use crate::group::record::{GroupRecord, record_key};
use crate::group::settings::SettingsRequest;
use crate::group::state::{GroupState, MemberId};
use prombus_store::{Batch, Change, CommitError, Expect};

impl Owner {
    /// Loads the group's record, which has to be taken then; `None` where there is nothing to take.
    pub(super) async fn load_record(&mut self) -> Result<Option<Free>, GroupError> {
        if self.name.ephemeral {
            return Ok(None);
        }
        let key = record_key(&self.name.topic, &self.name.group);
        let Some(free) = self.find_free(&key).await? else {
            self.existence = Existence::Absent;
            return Ok(None);
        };
        let stored = &free.stored;
        let record =
            GroupRecord::from_bytes(&stored.value).map_err(|reason| GroupError::Damaged {
                topic: self.name.topic.clone(),
                group: self.name.group.clone(),
                reason: reason.into(),
            })?;
        if self.is_of_another_topic(&record) {
            self.existence = Existence::Absent;
            self.stale_version = Some(stored.version);
            return Ok(None);
        }
        self.incarnation = record.incarnation;
        let counts = *self.state.counts();
        let rules = rules(&self.core, &self.name);
        let now_ms = self.core.monotonic_ms();
        self.state = GroupState::from_record(record, rules, now_ms);
        self.state.resume_counts(counts);
        self.take_partitions();
        self.filter = self.stored_filter();
        self.existence = Existence::Stored {
            version: stored.version,
        };
        Ok(Some(free))
    }

    /// Adds a member, and creates the group where there is none.
    pub(super) async fn join(&mut self, join: Join) -> Result<Membership, GroupError> {
        if self.inbox.is_delisted() {
            return Err(GroupError::Closed);
        }
        if self.existence == Existence::Absent {
            self.create(&join).await?;
        } else {
            self.check_settings(&join.settings)?;
        }
        if let Some(Filter::Function(function)) = &join.settings.filter {
            self.filter = Filter::Function(function.clone());
        } else if self.members.is_empty() {
            // A filter function ends with the members that set it.
            self.filter = self.stored_filter();
        }
        if let Some((via, _)) = &join.via {
            self.record_relay(*via).await?;
        }
        let ack_timeout_ms = join.settings.ack_timeout_ms;
        self.state.join(join.member, join.subscriber.name.clone());
        self.state.set_ack_timeout(join.member, ack_timeout_ms);
        if !join.held.is_empty() || join.replaces.is_some() {
            self.adopt_leases(&join);
        }
        join.subscriber.attach_group();
        self.members.push(Member {
            id: join.member,
            subscriber: join.subscriber,
            ack_timeout_ms,
            // The follower of a relayed one is with its own node, which leaves when there is nothing to do.
            follows_pattern: join.pattern.is_some() && join.via.is_none(),
            via: join.via,
        });
        Ok(Membership {
            inbox: self.inbox.clone(),
            member: join.member,
        })
    }

    /// Removes a member: others get its events at once, and those that it never took do not count as delivered.
    pub(super) fn remove_member(&mut self, member: MemberId, reason: &str, now_ms: u64) {
        let Some(at) = self.members.iter().position(|other| other.id == member) else {
            return;
        };
        self.reservations.retain(|one| one.member != member);
        let subscriber = self.members[at].subscriber.clone();
        let untaken = subscriber.reclaim(member, |_| true);
        self.state.release(member, &untaken);
        // Leases of all members may have ended since the last time, and each gets its own back.
        self.return_credit();
        let removed = self.members.remove(at);
        if let Some((via, _)) = removed.via {
            self.forget_relay(via);
        }
        let held = self.state.held_by(member);
        subscriber.credit.release(held, &self.inbox);
        subscriber.credit.dequeue(&self.inbox);
        self.state.leave(member, reason, now_ms);
    }

    async fn create(&mut self, join: &Join) -> Result<(), GroupError> {
        let (cursor, incarnation) =
            resolve_position(&self.core, &self.name.topic, &join.start_at).await?;
        // The topic may have been deleted, and made again, since the place was found in it.
        let expected = join.pattern.as_ref().map(|pattern| pattern.incarnation);
        if expected.is_some() && expected != incarnation {
            let topic = self.name.topic.clone();
            return Err(UnknownTopic { topic }.into());
        }
        self.incarnation = incarnation;
        let counts = *self.state.counts();
        let rules = rules(&self.core, &self.name);
        let mut state = GroupState::new(rules, cursor, self.core.monotonic_ms());
        if let Some(pattern) = &join.pattern {
            state.settings_mut().clone_from(&pattern.settings);
        }
        state.settings_mut().apply(&join.settings);
        if state.settings().partitioned {
            self.check_partitioned(join.pattern.is_some())?;
        }
        state.resume_counts(counts);
        self.existence = if self.name.ephemeral {
            Existence::Ephemeral
        } else {
            let stretch = match self.core.nodes.clone() {
                Some(nodes) => {
                    let claim = Claim {
                        to_seq: cursor,
                        hold_ms: join
                            .settings
                            .ack_timeout_ms
                            .unwrap_or(state.settings().ack_timeout_ms),
                    };
                    Some(self.begin_ownership(&nodes, 1, claim).await?)
                }
                None => None,
            };
            let mut batch = Batch::new();
            let record = self.owned(GroupRecord {
                written_ms: self.core.now_ms(),
                incarnation,
                ..state.to_record(&[])
            });
            batch.change(Change::Put {
                key: record_key(&self.name.topic, &self.name.group),
                value: record.to_bytes(),
                expect: self.stale_version.map_or(Expect::Absent, Expect::Version),
            });
            let receipt = self.core.store.commit(batch).await;
            let receipt = receipt.map_err(|error| {
                self.ownership = None;
                self.not_written(error)
            })?;
            if let Some(stretch) = stretch {
                self.claim_written(self.core.monotonic_ms());
                self.confirm_stretch(stretch);
            }
            Existence::Stored {
                version: receipt.versions.first().copied().unwrap_or_default(),
            }
        };
        self.state = state;
        self.take_partitions();
        self.is_clean_at(self.state.changes());
        Ok(())
    }

    pub(super) fn not_written(&self, error: CommitError) -> GroupError {
        match error {
            CommitError::StoreFailed(error) => error.into(),
            CommitError::Unavailable { cause } | CommitError::Unknown { cause } => {
                StoreFailed { cause }.into()
            }
            CommitError::Closed => GroupError::Closed,
            CommitError::VersionMismatch(_) => self.taken_over(),
            CommitError::UnknownTopic(_)
            | CommitError::IdConflict(_)
            | CommitError::SeqMismatch(_)
            | CommitError::LimitReached(_) => StoreFailed {
                cause: error.to_string().into(),
            }
            .into(),
        }
    }

    pub(super) fn taken_over(&self) -> GroupError {
        TakenOver {
            topic: self.name.topic.clone(),
            group: self.name.group.clone(),
        }
        .into()
    }

    /// Changes the settings of the group.
    pub(super) async fn configure(&mut self, request: &SettingsRequest) -> Result<(), GroupError> {
        if self.existence == Existence::Absent {
            return Err(self.unknown());
        }
        let ordering = request.ordering.unwrap_or(self.state.settings().ordering);
        if ordering != self.state.settings().ordering && self.state.has_blocked_events() {
            let reason = "events are blocked by earlier events of their key; settle those first";
            return Err(InvalidField::new("ordering", reason).into());
        }
        if self.state.settings_mut().apply(request) {
            self.state.touch();
            self.filter = self.stored_filter();
            self.flush_and_wait().await?;
        }
        Ok(())
    }

    /// A member that joins does not change the group's settings.
    fn check_settings(&self, request: &SettingsRequest) -> Result<(), GroupError> {
        match self.state.settings().mismatch(request) {
            None => Ok(()),
            Some(field) => Err(GroupMismatch {
                topic: self.name.topic.clone(),
                group: self.name.group.clone(),
                field,
            }
            .into()),
        }
    }

    fn stored_filter(&self) -> Filter {
        match &self.state.settings().filter {
            Some(fields) => Filter::Fields(fields.clone()),
            None => Filter::All,
        }
    }
}
