//! The owner of one group: the task that holds its state and does what the state decides. It reads ahead only what
//! members can take, hands events out, takes answers in, and writes the group down.

mod burying;
mod delivering;
mod doubt;
mod incarnation;
mod joining;
mod obeying;
mod panics;
mod reading;
mod stepping;
mod stopping;
mod writing;

use super::command::Command;
use super::counts::GroupCounts;
use super::history::History;
use super::inbox::{Inbox, LeaseName, Message};
use super::registry::{GroupName, Registry};
use super::settings::GroupSettings;
use super::state::{GroupState, LastResort, MEMBER_GONE, MemberId, Rules, Settled};
use super::status::{GroupStatus, SharedStatus};
use super::subscriber::{Ended, Subscriber};
use crate::consumer::{CatchPanic, panic_text};
use crate::core::Core;
use crate::filter::Filter;
use crate::memory::BudgetHold;
use crate::names::is_dead_letter_topic;
use burying::Gathering;
use delivering::Reservation;
use prombus_store::{StoredEvent, TailWatch};
use reading::Reading;
use std::sync::{Arc, Weak};
use std::time::Duration;
use stepping::Steps;
use tokio::sync::mpsc;
use writing::{Flushing, Writing};

/// The owner looks at the clock at least this often.
const MAX_SLEEP_MS: u64 = 3_600_000;

/// The owner of one group.
pub(crate) struct Owner {
    core: Arc<Core>,
    /// Weak, because the registry's end is what stops the owner.
    registry: Weak<Registry>,
    name: GroupName,
    commands: mpsc::Receiver<Command>,
    inbox: Arc<Inbox>,
    /// What the inbox is emptied into; its memory is used again.
    messages: Vec<Message>,
    /// What others see of the group.
    status: Arc<SharedStatus>,
    state: GroupState,
    filter: Filter,
    existence: Existence,
    /// The incarnation of the topic that the positions are of; none until the topic exists.
    incarnation: Option<u64>,
    /// The version of a record that is of an earlier incarnation, and is replaced when the group is made.
    stale_version: Option<u64>,
    /// The last panic of this owner, which it was rebuilt after.
    panicked: Option<String>,
    members: Vec<Member>,
    /// Whose turn it is to be given events.
    turn: usize,
    tail: TailWatch,
    /// Everything up to the tail has been read, and there is room for more.
    hungry: bool,
    /// No reading before this moment: the last one failed.
    read_again_ms: u64,
    reading: Option<Reading>,
    /// Where what is being read will go.
    reservations: Vec<Reservation>,
    /// The bytes of the page that what is ready came with.
    page: Option<BudgetHold>,
    /// How large the events of the last page were, on average.
    event_bytes: usize,
    gathering: Option<Gathering>,
    /// Dead letters that are ready to be written.
    burial: Vec<(u64, History, StoredEvent)>,
    /// Steps that wait to be written.
    steps: Steps,
    writing: Option<Writing>,
    flushing: Flushing,
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
        commands: mpsc::Receiver<Command>,
        counts: GroupCounts,
        status: Arc<SharedStatus>,
    ) -> Self {
        let rules = rules(&core, &name);
        let mut state = GroupState::new(rules, 0, core.monotonic_ms());
        state.resume_counts(counts);
        Self {
            tail: core.store.watch(&name.topic),
            inbox: Arc::new(Inbox::new(core.options.group_bytes)),
            core,
            registry,
            name,
            commands,
            messages: Vec::new(),
            status,
            state,
            filter: Filter::All,
            existence: Existence::Absent,
            incarnation: None,
            stale_version: None,
            panicked: None,
            members: Vec::new(),
            turn: 0,
            hungry: false,
            read_again_ms: 0,
            reading: None,
            reservations: Vec::new(),
            page: None,
            event_bytes: reading::FIRST_EVENT_BYTES,
            gathering: None,
            burial: Vec::new(),
            steps: Steps::default(),
            writing: None,
            flushing: Flushing::default(),
        }
    }

    /// Serves the group until nobody needs that any more.
    pub(crate) async fn run(mut self) {
        // Someone wanted something, or there would be no owner; waiting for it keeps a new one from retiring at once.
        let Some(first) = self.commands.recv().await else {
            return;
        };
        if let Err(error) = self.load().await {
            first.refuse(&error);
            return self.refuse_all(&error).await;
        }
        let mut first = Some(first);
        let stop = loop {
            match CatchPanic::new(self.serve(first.take())).await {
                Ok(stop) => break stop,
                Err(panic) => {
                    if let Some(stop) = self.rebuild(&panic_text(&*panic)).await {
                        break Some(stop);
                    }
                }
            }
        };
        if let Some(stop) = stop {
            self.stop(stop).await;
        }
    }

    /// Does what there is to do until the service ends; `None` where the owner has retired.
    async fn serve(&mut self, first: Option<Command>) -> Option<Stop> {
        let mut stop = match first {
            Some(first) => self.obey(first).await,
            None => None,
        };
        while stop.is_none() {
            let now_ms = self.now_ms();
            if self.is_stale() {
                return Some(Stop::Abandoning(Ended::TopicDeleted));
            }
            self.take_messages(now_ms);
            self.expire(now_ms);
            self.deliver(now_ms);
            self.read_on(now_ms);
            self.gather_steps(now_ms).await;
            self.write_down(now_ms);
            self.share_status();
            if self.is_idle() && self.retire() {
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

    /// Lets others see where the group stands. Whoever learns of a change by an answer or a delivery sees it here too, so
    /// this comes first.
    fn share_status(&self) {
        if self.existence != Existence::Absent {
            self.status.set(GroupStatus::of(&self.state));
        }
    }

    /// Waits for the next thing to do.
    async fn wait(&mut self, now_ms: u64) -> Option<Stop> {
        let sleep = self.next_moment().map(|moment_ms| {
            Duration::from_millis(moment_ms.saturating_sub(now_ms).min(MAX_SLEEP_MS))
        });
        tokio::select! {
            biased;
            command = self.commands.recv() => match command {
                Some(command) => return self.obey(command).await,
                None => return Some(Stop::Closing),
            },
            page = reading::done(&mut self.reading) => return self.take_page(page),
            gathered = burying::done(&mut self.gathering) => self.take_gathered(gathered),
            written = writing::done(&mut self.writing) => return self.take_written(written).await,
            () = self.inbox.arrived() => {}
            moved = self.tail.moved(), if self.hungry => {
                if !moved {
                    return Some(Stop::Closing);
                }
            }
            () = tokio::time::sleep(sleep.unwrap_or_default()), if sleep.is_some() => {}
        }
        None
    }

    /// When the clock alone gives something to do.
    fn next_moment(&mut self) -> Option<u64> {
        let reading = (self.read_again_ms > 0).then_some(self.read_again_ms);
        [self.state.next_due(), self.flush_moment(), reading]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what members have asked for since the last time.
    fn take_messages(&mut self, now_ms: u64) {
        let mut messages = std::mem::take(&mut self.messages);
        self.inbox.swap(&mut messages);
        for message in messages.drain(..) {
            self.take_message(message, now_ms);
        }
        self.messages = messages;
        self.return_credit();
    }

    fn take_message(&mut self, message: Message, now_ms: u64) -> Settled {
        match message {
            Message::Ack(LeaseName {
                member,
                seq,
                number,
            }) => self.state.ack(member, seq, Some(number), now_ms),
            Message::Nack(
                LeaseName {
                    member,
                    seq,
                    number,
                },
                refusal,
            ) => {
                let (reason, retry) = (&refusal.reason, refusal.retry);
                self.state
                    .nack(member, seq, Some(number), reason, retry, now_ms)
            }
            Message::Extend(
                LeaseName {
                    member,
                    seq,
                    number,
                },
                extend_ms,
            ) => self
                .state
                .extend(member, seq, Some(number), extend_ms, now_ms),
            Message::Confirm(message, reply) => {
                let is_extension = matches!(*message, Message::Extend(..));
                let settled = self.take_message(*message, now_ms);
                let confirmed = match is_extension {
                    true => Ok(settled),
                    false => self.can_be_written().map(|()| settled),
                };
                // Whoever asked may have gone away.
                let _ = reply.send(confirmed);
                settled
            }
            Message::Step(step) => {
                self.take_step(*step, now_ms);
                Settled::Done
            }
            Message::GiveBack(member, untaken) => {
                self.state.give_back(member, &untaken);
                Settled::Done
            }
            Message::SetAckTimeout(member, ack_timeout_ms) => {
                self.state.set_ack_timeout(member, ack_timeout_ms);
                for one in self.members.iter_mut().filter(|one| one.id == member) {
                    one.ack_timeout_ms = ack_timeout_ms;
                }
                Settled::Done
            }
            Message::Leave(member) => {
                self.dismiss(member, MEMBER_GONE, now_ms);
                Settled::Done
            }
        }
    }

    /// Ends the leases that ran out. What lies unseen in a mailbox goes back without counting.
    fn expire(&mut self, now_ms: u64) {
        if self.state.next_due().is_none_or(|due_ms| due_ms > now_ms) {
            return;
        }
        for member in &self.members {
            let untaken = member
                .subscriber
                .take_back(member.id, |leased| leased.deadline_ms <= now_ms);
            self.state.give_back(member.id, &untaken);
        }
        self.state.tick(now_ms);
        self.return_credit();
    }
}

/// What a group of this name goes by, before anyone has said anything about it.
fn rules(core: &Core, name: &GroupName) -> Rules {
    let last_resort = if is_dead_letter_topic(&name.topic) {
        LastResort::KeepTrying
    } else if name.ephemeral {
        LastResort::GiveUp
    } else {
        LastResort::DeadLetter
    };
    Rules {
        settings: GroupSettings::default(),
        backoff: core.options.backoff,
        last_resort,
        window: core.options.group_window,
        max_lost_attempts: core.options.max_lost_attempts,
        wall_offset_ms: wall_offset_ms(core),
    }
}

/// What has to be added to monotonic time to get epoch milliseconds.
fn wall_offset_ms(core: &Core) -> i64 {
    core.now_ms().wrapping_sub(core.monotonic_ms()) as i64
}
