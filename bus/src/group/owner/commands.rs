//! The commands of the bus: what each of them asks of the owner; describing and explaining the group.

use super::{Existence, Owner, Stop};
use crate::core::Core;
use crate::error::{GroupError, LeaseLost, SettleError, UnknownId};
use crate::group::command::{Asker, Command, SettleByIds};
use crate::group::explain::{MAX_REPORTED_LANES, Situation, reason, sentence};
use crate::group::state::{BlockedLane, MemberId, Settled};
use prombus_interface::{Explanation, GroupInfo, LaneInfo, MemberInfo, SettleOp};
use prombus_store::{Find, ReadFrom, ReadLimit};
use std::sync::Arc;

/// The number that no member has: a request with it settles only what no member holds.
const NO_MEMBER: MemberId = 0;

impl Owner {
    /// Handles a command; some of them stop the owner.
    pub(super) async fn handle_command(&mut self, command: Command) -> Option<Stop> {
        match command {
            Command::Join(join, reply) => {
                let membership = self.join(*join).await;
                // A membership that the caller no longer waits for is dropped, which ends it.
                let _ = reply.send(membership);
            }
            // Who is no member may ask too, and there may be no group.
            Command::Settle(..) | Command::AckPublish(..)
                if self.existence == Existence::Absent =>
            {
                self.refuse_unknown(command);
            }
            Command::Settle(settle, reply) => {
                let _ = reply.send(self.settle_by_ids(settle).await);
            }
            Command::AckPublish(asker, ack_publishes) => {
                let member = self.member_of(&asker);
                for (ack_publish, reply) in ack_publishes {
                    self.ack_publish_by_ids(member, ack_publish, reply).await;
                }
            }
            Command::Describe(reply) => {
                let _ = reply.send(self.describe());
            }
            Command::Explain(reply) => {
                let _ = reply.send(self.explain().await);
            }
            Command::Seek(seek, reply) => {
                let _ = reply.send(self.seek(&seek).await);
            }
            Command::UndoSeek(reply) => {
                let _ = reply.send(self.undo_seek().await);
            }
            Command::SetPaused(paused, reply) => {
                let _ = reply.send(self.set_paused(paused).await);
            }
            Command::Remove(reason, reply) => {
                let removed = self.remove().await;
                let is_removed = removed.is_ok();
                let _ = reply.send(removed);
                return is_removed.then_some(Stop::Abandoning(reason));
            }
            Command::Abandon(reason, reply) => {
                let current = self.core.store.incarnation(&self.name.topic);
                let is_of_current = self.incarnation.is_some() && self.incarnation == current;
                let _ = reply.send(Ok(()));
                // The topic may have been made again, and this group with it.
                return (!is_of_current).then_some(Stop::Abandoning(reason));
            }
            Command::Configure(request, reply) => {
                let _ = reply.send(self.configure(&request).await);
            }
            Command::Reported(via) => self.reported(via),
        }
        None
    }

    /// Replies that the group knows none of the events.
    fn refuse_unknown(&self, command: Command) {
        let unknown = |id: &str| UnknownId::new(&self.name.topic, id);
        match command {
            Command::Settle(settle, reply) => {
                let ids = settle.ids.iter();
                let _ = reply.send(ids.map(|id| Err(unknown(id).into())).collect());
            }
            Command::AckPublish(_, ack_publishes) => {
                for (ack_publish, reply) in ack_publishes {
                    let id = ack_publish.ids.first().map_or("", String::as_str);
                    let _ = reply.send(Err(unknown(id).into()));
                }
            }
            command => command.fail(&self.unknown()),
        }
    }

    async fn settle_by_ids(&mut self, settle: SettleByIds) -> Vec<Result<(), SettleError>> {
        let member = self.member_of(&settle.asker);
        let mut results = Vec::with_capacity(settle.ids.len());
        for id in &settle.ids {
            results.push(self.settle_by_id(member, &settle.op, id).await);
        }
        self.return_credit();
        self.share_status();
        results
    }

    /// The member that sent a request; [`NO_MEMBER`] where a follower is not a member now.
    fn member_of(&self, asker: &Asker) -> MemberId {
        match asker {
            Asker::Member(member) => *member,
            Asker::Follower(subscriber) => {
                let mut members = self.members.iter();
                let member = members.find(|member| Arc::ptr_eq(&member.subscriber, subscriber));
                member.map_or(NO_MEMBER, |member| member.id)
            }
        }
    }

    /// The position of the event with an id.
    pub(super) async fn position(&mut self, id: &str) -> Result<u64, UnknownId> {
        match self.state.seq_of(id) {
            Some(seq) => Ok(seq),
            // Not one that was delivered lately; the store knows all of them.
            None => {
                let found = self.core.store.find(&self.name.topic, Find::Id(id)).await;
                let unknown = || UnknownId::new(&self.name.topic, id);
                found.unwrap_or_default().ok_or_else(unknown)
            }
        }
    }

    async fn settle_by_id(
        &mut self,
        member: MemberId,
        op: &SettleOp,
        id: &str,
    ) -> Result<(), SettleError> {
        let seq = self.position(id).await?;
        if let SettleOp::Extend { extend_ms } = op {
            let extend_ms = self.extension_ms(*extend_ms);
            if let Err(error) = self.cover_extension(extend_ms).await {
                let cause = error.to_string().into();
                return Err(SettleError::NotWritten { cause });
            }
        }
        let now_ms = self.now_ms();
        match (self.settle(member, seq, None, op, now_ms), op) {
            (Settled::Done | Settled::Already, SettleOp::Extend { .. }) => Ok(()),
            (Settled::Done | Settled::Already, _) => self.check_writable(),
            (Settled::Unknown, SettleOp::Extend { .. }) => {
                Err(UnknownId::new(&self.name.topic, id).into())
            }
            // The group is not that far, so nothing is left to bring back.
            (Settled::Unknown, SettleOp::Nack(_)) => Ok(()),
            // Another member holds it, or the cursor was set back since it was delivered.
            (Settled::LeaseLost | Settled::Unknown, _) => Err(LeaseLost { seq }.into()),
        }
    }

    /// What settles an event counts only if it will be in the group's record.
    pub(super) fn check_writable(&self) -> Result<(), SettleError> {
        match &self.flush_schedule.write_error {
            Some(cause) => Err(SettleError::NotWritten {
                cause: cause.clone(),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn describe(&mut self) -> Result<GroupInfo, GroupError> {
        if self.existence == Existence::Absent || self.is_stale() {
            return Err(self.unknown());
        }
        let (now_ms, stages) = (self.now_ms(), self.state.stages());
        let settings = self.state.settings();
        let info = self.core.store.topic(&self.name.topic);
        let (first, tail) = info.map_or((1, 0), |info| (info.first_seq, info.tail_seq));
        Ok(GroupInfo {
            topic: self.name.topic.clone(),
            group: self.name.group.clone(),
            created_ms: self.state.created_ms(),
            cursor: self.state.cursor(),
            tail,
            lag: self.state.lag(first, tail),
            skipped: self.state.skipped(),
            ack_timeout_ms: settings.ack_timeout_ms,
            max_attempts: settings.max_attempts,
            ordering: settings.ordering,
            filter: settings.filter.clone(),
            paused: self.state.paused_since_ms().is_some(),
            paused_since_ms: self.state.paused_since_ms(),
            partitions: self.state.partition_count(),
            members: self.member_infos(now_ms),
            in_flight: stages.leased as u64,
            waiting: stages.waiting as u64,
            oldest_in_flight_ms: stages
                .oldest_lease_ms
                .map_or(0, |start_ms| now_ms.saturating_sub(start_ms)),
            counts: *self.state.counts(),
        })
    }

    fn member_infos(&self, now_ms: u64) -> Vec<MemberInfo> {
        let oldest = self.state.oldest_leases();
        let mut assignments = self.state.assignments();
        let held_ms = |start_ms: &u64| now_ms.saturating_sub(*start_ms);
        let mut info = |member: &super::Member| MemberInfo {
            name: member.subscriber.name.clone(),
            paused: member.subscriber.is_paused(),
            in_flight: self.state.held_by(member.id) as u64,
            max_in_flight: member.subscriber.credit.limit() as u64,
            room: member.subscriber.credit.room() as u64,
            oldest_in_flight_ms: oldest.get(&member.id).map_or(0, held_ms),
            partitions: assignments.remove(&member.id).unwrap_or_default(),
            node: member.via.as_ref().map(|(_, node)| node.clone()),
        };
        self.members.iter().map(&mut info).collect()
    }

    async fn explain(&mut self) -> Result<Explanation, GroupError> {
        let group = self.describe()?;
        let stages = self.state.stages();
        let situation = Situation {
            ready: stages.ready,
            unread: group.tail.saturating_sub(self.state.head()),
            blocked_by_key: stages.blocked_by_key,
            window_left: self.state.window_left(),
            next_retry_ms: stages.next_due_ms,
        };
        let mut lanes = Vec::new();
        for lane in self.state.blocked_lanes(MAX_REPORTED_LANES) {
            lanes.push(lane_info(&self.core, &self.name.topic, lane).await);
        }
        let reason = reason(&group, &situation);
        let now_ms = self.now_ms();
        let mut sentence = sentence(reason, &group, &situation, &lanes, now_ms);
        if let Some(cause) = &self.flush_schedule.write_error {
            sentence = format!("Acknowledgements fail: {cause}. {sentence}");
        }
        for lane in &mut lanes {
            lane.due_ms = lane.due_ms.map(|due_ms| self.state.wall_ms(due_ms));
        }
        let next_retry_ms = situation.next_retry_ms;
        Ok(Explanation {
            sentence: match &self.panicked {
                Some(panic) => format!("{sentence} Its owner panicked and was replaced: {panic}."),
                None => sentence,
            },
            reason,
            lanes,
            next_retry_ms: next_retry_ms.map(|due_ms| self.state.wall_ms(due_ms)),
            damage: Vec::new(),
            panicked: self.panicked.clone(),
            node: self.serving_node(),
            group,
        })
    }
}

async fn lane_info(core: &Core, topic: &Arc<str>, lane: BlockedLane) -> LaneInfo {
    let limit = ReadLimit {
        events: 1,
        bytes: 1,
    };
    let page = core
        .store
        .read(topic, ReadFrom::Seq(lane.by_seq), limit)
        .await;
    let mut events = page.map(|page| page.events).unwrap_or_default().into_iter();
    let event = events.find(|event| event.seq() == lane.by_seq);
    LaneInfo {
        blocked_by_seq: lane.by_seq,
        blocked_by_id: event.as_ref().map(|event| event.id().into_owned()),
        key: event
            .as_ref()
            .and_then(|event| Some(event.key()?.into_owned())),
        waiting: lane.waiting as u64,
        due_ms: lane.due_ms,
    }
}
