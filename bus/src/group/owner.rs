//! The owner of one group: the task that holds its state and carries out its decisions. It reads ahead only what
//! members have room for, delivers events, handles settlements, and writes the group's record.

mod ack_publish;
mod commands;
mod dead_letter;
mod delivery;
mod dormancy;
mod in_doubt;
mod incarnation;
mod membership;
mod ownership;
mod panic_recovery;
mod partitions;
mod pause;
mod persistence;
mod read_ahead;
mod relay;
mod relayed_members;
mod seek;
mod shutdown;

use super::history::History;
use super::inbox::{Inbox, Message, SettleLease};
use super::ownership::Via;
use super::registry::{GroupName, Registry};
use super::settings::GroupSettings;
use super::state::{ExhaustedPolicy, GroupState, MEMBER_LEFT, MemberId, Rules, Settled};
use super::status::{GroupStatus, SharedStatus};
use super::subscriber::{Ended, Subscriber};
use crate::core::Core;
use crate::filter::Filter;
use crate::memory::BudgetHold;
use ack_publish::AckPublishQueue;
use dead_letter::OriginalsRead;
use delivery::Reservation;
use ownership::Ownership;
use persistence::{FlushSchedule, PendingWrite};
use prombus_interface::names::is_dead_letter_topic;
use prombus_interface::{CatchPanic, GroupCounts, SettleOp, panic_text};
use prombus_store::{StoredEvent, TailWatch};
use read_ahead::PendingRead;
use relay::{Relay, Relayed};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The owner looks at the clock at least this often.
const MAX_SLEEP_MS: u64 = 3_600_000;

/// The owner of one group.
pub(crate) struct Owner {
    core: Arc<Core>,
    /// Weak, because the registry's end is what stops the owner.
    registry: Weak<Registry>,
    name: GroupName,
    inbox: Arc<Inbox>,
    /// What was taken from the inbox and is not handled yet; its memory is used again.
    messages: VecDeque<Message>,
    /// What others see of the group.
    status: Arc<SharedStatus>,
    state: GroupState,
    filter: Filter,
    existence: Existence,
    /// The incarnation of the topic that the positions are of; none until the topic exists.
    incarnation: Option<u64>,
    /// The version of a record that is of an earlier incarnation, and is replaced when the group is made.
    stale_version: Option<u64>,
    /// On a store that several nodes share; `None` elsewhere, and while the group is not this node's.
    ownership: Option<Ownership>,
    /// What is known of its members' leases while another node has the group.
    relay: Option<Box<Relay>>,
    /// The last panic of this owner, which it was rebuilt after.
    panicked: Option<String>,
    members: Vec<Member>,
    /// Since when there has been nothing to do for members that follow a pattern.
    idle_since_ms: Option<u64>,
    /// How many deliveries the group had when this owner began.
    delivered_at_start: u64,
    /// Whose turn it is to be given events.
    turn: usize,
    tail: TailWatch,
    /// Everything up to the tail has been read, and there is room for more.
    awaiting_tail: bool,
    /// No reading before this moment: the last one failed.
    read_retry_at_ms: u64,
    pending_read: Option<PendingRead>,
    /// Room that is reserved for the pending read.
    reservations: Vec<Reservation>,
    /// The bytes of the page that what is ready came with.
    page: Option<BudgetHold>,
    /// How large the events of the last page were, on average.
    event_bytes: usize,
    /// Whether the last read was for parked partitions, and how many were.
    has_refilled: bool,
    refill_turn: usize,
    originals_read: Option<OriginalsRead>,
    /// Dead letters whose originals are read, to be written.
    dead_letters: Vec<(u64, History, StoredEvent)>,
    /// Transactions that wait to be written.
    ack_publishes: AckPublishQueue,
    pending_write: Option<PendingWrite>,
    flush_schedule: FlushSchedule,
}

/// Whether there is such a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existence {
    /// Not yet: the first to join makes it.
    Absent,
    /// Its record is at this version.
    Stored { version: u64 },
    /// It is, and nothing of it is stored.
    Ephemeral,
}

/// A subscription that is served.
struct Member {
    id: MemberId,
    subscriber: Arc<Subscriber>,
    /// How long its leases are, where it says so.
    ack_timeout_ms: Option<u64>,
    /// It joined through a pattern, whose follower joins again when there is something to deliver.
    follows_pattern: bool,
    /// The node that it is on, and what people know that by, where it is not this one.
    via: Option<(Via, Arc<str>)>,
}

/// Ends the inbox when the owner's task ends, however that happens.
struct EndInbox(Arc<Inbox>);

impl Drop for EndInbox {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Why the owner stops.
enum Stop {
    /// The bus is closed or gone: what is known is written first.
    Closing,
    /// The group is not its business any more: nothing is written.
    Abandoning(Ended),
}

impl Owner {
    pub(crate) fn new(
        core: Arc<Core>,
        registry: Weak<Registry>,
        name: GroupName,
        inbox: Arc<Inbox>,
        counts: GroupCounts,
        status: Arc<SharedStatus>,
    ) -> Self {
        let rules = rules(&core, &name);
        let mut state = GroupState::new(rules, 0, core.monotonic_ms());
        state.resume_counts(counts);
        Self {
            tail: core
                .shadows
                .tail(&name)
                .unwrap_or_else(|| core.store.watch(&name.topic)),
            core,
            registry,
            name,
            inbox,
            messages: VecDeque::new(),
            status,
            state,
            filter: Filter::All,
            existence: Existence::Absent,
            incarnation: None,
            stale_version: None,
            ownership: None,
            relay: None,
            panicked: None,
            members: Vec::new(),
            idle_since_ms: None,
            delivered_at_start: counts.delivered,
            turn: 0,
            awaiting_tail: false,
            read_retry_at_ms: 0,
            pending_read: None,
            reservations: Vec::new(),
            page: None,
            event_bytes: read_ahead::FIRST_EVENT_BYTES,
            has_refilled: false,
            refill_turn: 0,
            originals_read: None,
            dead_letters: Vec::new(),
            ack_publishes: AckPublishQueue::default(),
            pending_write: None,
            flush_schedule: FlushSchedule::default(),
        }
    }

    /// Serves the group until the owner retires or is stopped.
    pub(crate) async fn run(mut self) {
        let _ending = EndInbox(self.inbox.clone());
        // An owner is started for a command; waiting for it keeps a new one from retiring at once.
        while !self.inbox.has_commands() {
            if self.inbox.is_delisted() {
                return;
            }
            self.inbox.arrived().await;
        }
        loop {
            match self.load_or_relay().await {
                None => {}
                Some(Relayed::Stop(stop)) => return self.stop_relaying(stop).await,
                Some(_) => return,
            }
            match self.serve_or_rebuild().await {
                None => return,
                Some(Stop::Abandoning(Ended::TakenOver))
                    if self.may_relay() && self.has_own_members() =>
                {
                    self.begin_relaying().await;
                }
                Some(stop) => return self.stop(stop).await,
            }
        }
    }

    /// Whether members of this node are served.
    fn has_own_members(&self) -> bool {
        self.members.iter().any(|member| member.via.is_none())
    }

    /// Serves the group, and goes on after a panic; `None` where the owner has retired.
    async fn serve_or_rebuild(&mut self) -> Option<Stop> {
        loop {
            match CatchPanic::new(self.serve()).await {
                Ok(stop) => return stop,
                Err(panic) => {
                    if let Some(stop) = self.rebuild(&panic_text(&*panic)).await {
                        return Some(stop);
                    }
                }
            }
        }
    }

    /// Does what there is to do until the service ends; `None` where the owner has retired.
    async fn serve(&mut self) -> Option<Stop> {
        let mut stop = None;
        while stop.is_none() {
            if let Some(stop) = self.drain_inbox().await {
                return Some(stop);
            }
            if self.is_stale() {
                return Some(Stop::Abandoning(Ended::TopicDeleted));
            }
            let now_ms = self.now_ms();
            self.expire(now_ms);
            self.assign_partitions(now_ms);
            self.look_at_awaited(now_ms).await;
            self.deliver(now_ms);
            self.raise_claim(now_ms);
            self.start_next_read(now_ms);
            self.coalesce_ack_publishes(now_ms).await;
            self.flush_if_due(now_ms);
            self.share_status();
            if self.retire_if_idle().await || self.sleep_if_due(now_ms).await {
                return None;
            }
            stop = self.wait(now_ms).await;
        }
        stop
    }

    /// Monotonic time, by which everything is due. The state also learns what the wall clock shows.
    fn now_ms(&mut self) -> u64 {
        let now_ms = self.core.monotonic_ms();
        let offset_ms = wall_offset_ms(&self.core);
        self.state.set_wall_offset(offset_ms);
        now_ms
    }

    /// Publishes the group's status. A caller that learns of a change by a reply or a delivery finds it here too, so
    /// this comes first.
    fn share_status(&self) {
        if self.existence != Existence::Absent {
            self.status.set(GroupStatus::of(&self.state));
        }
    }

    /// Waits for the next thing to do.
    async fn wait(&mut self, now_ms: u64) -> Option<Stop> {
        let sleep = self.next_wakeup_ms().map(|moment_ms| {
            Duration::from_millis(moment_ms.saturating_sub(now_ms).min(MAX_SLEEP_MS))
        });
        tokio::select! {
            biased;
            page = read_ahead::done(&mut self.pending_read) => return self.read_completed(page),
            originals = dead_letter::done(&mut self.originals_read) => self.take_originals(originals),
            written = persistence::done(&mut self.pending_write) => return self.write_completed(written).await,
            () = self.inbox.arrived() => {}
            moved = self.tail.moved(), if self.awaiting_tail => {
                if !moved {
                    return Some(Stop::Closing);
                }
            }
            () = tokio::time::sleep(sleep.unwrap_or_default()), if sleep.is_some() => {}
        }
        None
    }

    /// When the clock alone gives something to do.
    fn next_wakeup_ms(&mut self) -> Option<u64> {
        let pending_read = (self.read_retry_at_ms > 0).then_some(self.read_retry_at_ms);
        let moments = [
            self.state.next_due(),
            self.next_flush_ms(),
            pending_read,
            self.dormant_at_ms(),
            self.next_awaited_ms(),
        ];
        moments.into_iter().flatten().min()
    }

    /// Handles what was sent since the last time, in its order.
    async fn drain_inbox(&mut self) -> Option<Stop> {
        // Read first: what was sent before the owner was taken off the list is still handled.
        let is_delisted = self.inbox.is_delisted();
        self.inbox.take(&mut self.messages);
        loop {
            if let Some(stop) = self.keep_ownership().await {
                return Some(stop);
            }
            let now_ms = self.now_ms();
            self.handle_messages(now_ms);
            let Some(Message::Command(command)) = self.messages.pop_front() else {
                return is_delisted.then_some(Stop::Closing);
            };
            if let Some(stop) = self.handle_command(*command).await {
                return Some(stop);
            }
        }
    }

    /// Handles the messages of members that were taken and are not behind a command.
    fn handle_messages(&mut self, now_ms: u64) {
        let is_message = |message: &Message| !message.is_command();
        while self.messages.front().is_some_and(is_message)
            && let Some(message) = self.messages.pop_front()
        {
            self.handle_message(message, now_ms);
        }
        self.return_credit();
    }

    fn handle_message(&mut self, message: Message, now_ms: u64) {
        match message {
            Message::Settle(settle) => {
                if let Some(settle) = self.defer_extension(settle) {
                    self.settle_lease(settle, now_ms);
                }
            }
            Message::AckPublish(ack_publish) => self.take_ack_publish(*ack_publish, now_ms),
            Message::Release(member, untaken) => self.state.release(member, &untaken),
            Message::SetAckTimeout(member, ack_timeout_ms) => {
                self.state.set_ack_timeout(member, ack_timeout_ms);
                for one in self.members.iter_mut().filter(|one| one.id == member) {
                    one.ack_timeout_ms = ack_timeout_ms;
                }
            }
            Message::ConfirmRevoked(member, partitions) => {
                self.state.confirm_revoked(member, &partitions);
            }
            Message::Leave(member) => self.remove_member(member, MEMBER_LEFT, now_ms),
            // Handled by `drain_inbox`, because a command may wait for the store.
            Message::Command(_) => {}
        }
    }

    fn settle_lease(&mut self, settle: SettleLease, now_ms: u64) {
        let SettleLease { lease, op, reply } = settle;
        let number = Some(lease.number);
        let settled = self.settle(lease.member, lease.seq, number, &op, now_ms);
        if let Some(reply) = reply {
            let confirmed = if op.is_extension() {
                Ok(settled)
            } else {
                self.check_writable().map(|()| settled)
            };
            // The caller may have gone away.
            let _ = reply.send(confirmed);
        }
    }

    /// Settles an event or extends its lease: the one that is named by its number, or whichever the member has.
    fn settle(
        &mut self,
        member: MemberId,
        seq: u64,
        number: Option<u64>,
        op: &SettleOp,
        now_ms: u64,
    ) -> Settled {
        match op {
            SettleOp::Ack => self.state.ack(member, seq, number, now_ms),
            SettleOp::Nack(nack) => {
                let (reason, retry) = (&nack.reason, nack.retry);
                self.state.nack(member, seq, number, reason, retry, now_ms)
            }
            SettleOp::Extend { extend_ms } => {
                let extend_ms = self.extension_ms(*extend_ms);
                self.state.extend(member, seq, number, extend_ms, now_ms)
            }
        }
    }

    /// How long an extension is: as long as leases of the group where it does not say.
    fn extension_ms(&self, extend_ms: Option<u64>) -> u64 {
        extend_ms.unwrap_or(self.state.settings().ack_timeout_ms)
    }

    /// Ends the leases that expired. Events that are still in a mailbox are released without counting as delivered.
    fn expire(&mut self, now_ms: u64) {
        if self.state.next_due().is_none_or(|due_ms| due_ms > now_ms) {
            return;
        }
        for member in &self.members {
            let untaken = member
                .subscriber
                .reclaim(member.id, |leased| leased.deadline_ms <= now_ms);
            self.state.release(member.id, &untaken);
        }
        self.state.tick(now_ms);
        self.return_credit();
    }
}

/// What a group of this name goes by, before anyone has said anything about it.
fn rules(core: &Core, name: &GroupName) -> Rules {
    let exhausted_policy = if is_dead_letter_topic(&name.topic) {
        ExhaustedPolicy::RetryForever
    } else if name.ephemeral {
        ExhaustedPolicy::Discard
    } else {
        ExhaustedPolicy::DeadLetter
    };
    Rules {
        settings: GroupSettings::default(),
        backoff: core.options.backoff,
        exhausted_policy,
        window: core.options.group_window,
        max_lost_attempts: core.options.max_lost_attempts,
        max_undo_settled: core.options.max_undo_settled,
        wall_offset_ms: wall_offset_ms(core),
    }
}

/// What has to be added to monotonic time to get epoch milliseconds.
fn wall_offset_ms(core: &Core) -> i64 {
    core.now_ms().wrapping_sub(core.monotonic_ms()) as i64
}
