//! The state machine against a model that is too simple to be wrong: sets and counters, and every rule of the
//! contract checked at every step, with random publishing, delivery, answers, time, lost members, crashes and
//! restarts.

mod ack_publish;

use super::tests::{event, rules};
use super::*;
use crate::group::record::GroupRecord;
use ack_publish::PendingWrite;
use prombus_interface::Ordering;
use prombus_store::StoredEvent;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const MAX_ATTEMPTS: u32 = 3;
const ACK_TIMEOUT_MS: u64 = 30_000;
const KEYS: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Op {
    Publish {
        key: Option<usize>,
        client_id: bool,
        wanted: bool,
    },
    Deliver {
        member: MemberId,
        count: usize,
    },
    Ack {
        delivery: prop::sample::Index,
        by_number: bool,
    },
    Nack {
        delivery: prop::sample::Index,
        delay_ms: Option<u64>,
    },
    Extend {
        delivery: prop::sample::Index,
        extend_ms: u64,
    },
    Advance {
        by_ms: u64,
    },
    Disconnect {
        member: MemberId,
        untaken: usize,
    },
    DeadLetter {
        succeeds: bool,
    },
    /// Acknowledges deliveries of one member in a transaction.
    Take {
        delivery: prop::sample::Index,
        more: Vec<prop::sample::Index>,
        by_number: bool,
    },
    /// The same for one event by its id, by any member.
    TakeAny {
        event: prop::sample::Index,
        member: MemberId,
    },
    /// Starts writing the first transactions.
    Write {
        count: usize,
    },
    Complete {
        succeeds: bool,
    },
    Flush,
    Restart {
        /// Whether the write that was under way reached the disk.
        written: bool,
    },
}

/// One published event.
#[derive(Debug, Clone)]
struct Published {
    key: Option<usize>,
    client_id: bool,
    wanted: bool,
}

/// A delivery that a member got, its lease over or not.
#[derive(Debug, Clone, Copy)]
struct Given {
    member: MemberId,
    seq: u64,
    number: u64,
}

/// What must be true of the group.
#[derive(Debug, Clone, Default)]
struct Model {
    settled: BTreeSet<u64>,
    dead: BTreeSet<u64>,
    failures: BTreeMap<u64, u32>,
    /// Member, lease number and deadline.
    leases: BTreeMap<u64, (MemberId, u64, u64)>,
    /// Events whose transactions are not written yet.
    pinned: BTreeSet<u64>,
}

struct World {
    ordering: Ordering,
    now_ms: u64,
    log: Vec<Published>,
    state: GroupState,
    model: Model,
    /// What a crash leaves, and what is true of it.
    flushed: (Vec<u8>, Model),
    delivered: Vec<Given>,
    /// Dead letters being written.
    dead_letter: Vec<u64>,
    /// Queued transactions.
    ack_publishes: VecDeque<Vec<u64>>,
    writing: Option<PendingWrite>,
    /// Events whose transactions are committed: what the log holds.
    outputs: BTreeSet<u64>,
    next_member: MemberId,
    members: [MemberId; 2],
}

impl World {
    fn new(ordering: Ordering) -> Self {
        let state = GroupState::new(
            rules(MAX_ATTEMPTS, ordering, ExhaustedPolicy::DeadLetter),
            0,
            0,
        );
        let bytes = state.to_record(&[]).to_bytes().to_vec();
        let mut world = Self {
            ordering,
            now_ms: 1_000,
            log: Vec::new(),
            state,
            model: Model::default(),
            flushed: (bytes, Model::default()),
            delivered: Vec::new(),
            dead_letter: Vec::new(),
            ack_publishes: VecDeque::new(),
            writing: None,
            outputs: BTreeSet::new(),
            next_member: 3,
            members: [1, 2],
        };
        world.state.join(1, "one".into());
        world.state.join(2, "two".into());
        world
    }

    fn event(&self, seq: u64) -> StoredEvent {
        let published = &self.log[seq as usize - 1];
        let id = published.client_id.then(|| format!("own-{seq}"));
        event(seq, published.key.map(|key| KEYS[key]), id.as_deref())
    }

    fn op(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Publish {
                key,
                client_id,
                wanted,
            } => {
                self.log.push(Published {
                    key,
                    client_id,
                    wanted,
                });
            }
            Op::Deliver { member, count } => self.deliver(self.members[member as usize], count)?,
            Op::Ack {
                delivery,
                by_number,
            } => self.ack(delivery, by_number)?,
            Op::Nack { delivery, delay_ms } => self.nack(delivery, delay_ms)?,
            Op::Extend {
                delivery,
                extend_ms,
            } => self.extend(delivery, extend_ms)?,
            Op::Advance { by_ms } => self.advance(by_ms),
            Op::Disconnect { member, untaken } => self.disconnect(member as usize, untaken),
            Op::DeadLetter { succeeds } => self.dead_letter(succeeds),
            Op::Take {
                delivery,
                more,
                by_number,
            } => self.take(delivery, &more, by_number)?,
            Op::TakeAny { event, member } => self.take_any(event, member)?,
            Op::Write { count } => self.write(count),
            Op::Complete { succeeds } => self.complete_write(succeeds)?,
            Op::Flush => self.flush(),
            Op::Restart { written } => self.restart(written)?,
        }
        self.check()
    }

    /// Reads what is due and what is new, as an owner does.
    fn read(&mut self) {
        while let Some((first, last)) = self.state.missing(4, 3, |_| true) {
            let events = (first..=last).map(|seq| self.event(seq)).collect();
            self.state.supply(first, events, last + 1, self.now_ms);
        }
        let tail = self.log.len() as u64;
        while self.state.read_from() <= tail {
            let seq = self.state.read_from();
            let wanted = self.log[seq as usize - 1].wanted;
            if !wanted {
                self.model.settled.insert(seq);
            }
            self.state.offer(self.event(seq), wanted, self.now_ms);
            self.state.passed(seq + 1);
        }
    }

    fn deliver(&mut self, member: MemberId, count: usize) -> Result<(), TestCaseError> {
        self.read();
        let mut out = Vec::new();
        self.state.lease(member, count, self.now_ms, &mut out);
        prop_assert!(out.len() <= count);
        for leased in out {
            let seq = leased.event.seq();
            let model = &mut self.model;
            prop_assert!(!model.settled.contains(&seq), "{seq} is settled");
            prop_assert!(!model.dead.contains(&seq), "{seq} is dead");
            prop_assert!(!model.leases.contains_key(&seq), "{seq} is leased twice");
            prop_assert!(!model.pinned.contains(&seq), "{seq} is in a step");
            let failures = model.failures.get(&seq).copied().unwrap_or(0);
            prop_assert_eq!(leased.attempt, failures + 1);
            prop_assert!(leased.attempt <= MAX_ATTEMPTS);
            if self.ordering == Ordering::Key
                && let Some(key) = self.log[seq as usize - 1].key
            {
                for earlier in 1..seq {
                    let same_key = self.log[earlier as usize - 1].key == Some(key);
                    let done = model.settled.contains(&earlier) || model.dead.contains(&earlier);
                    prop_assert!(!same_key || done, "{seq} before {earlier}");
                }
            }
            model
                .leases
                .insert(seq, (member, leased.number, leased.deadline_ms));
            self.delivered.push(Given {
                member,
                seq,
                number: leased.number,
            });
        }
        Ok(())
    }

    fn pick(&self, index: prop::sample::Index) -> Option<Given> {
        (!self.delivered.is_empty()).then(|| self.delivered[index.index(self.delivered.len())])
    }

    fn ack(&mut self, delivery: prop::sample::Index, by_number: bool) -> Result<(), TestCaseError> {
        let Some(Given {
            member,
            seq,
            number,
        }) = self.pick(delivery)
        else {
            return Ok(());
        };
        let model = &mut self.model;
        let expected = match model.leases.get(&seq) {
            Some(&(holder, ..)) if holder != member => Settled::LeaseLost,
            _ if model.pinned.contains(&seq) => Settled::Already,
            _ if model.settled.contains(&seq) || model.dead.contains(&seq) => Settled::Already,
            // Failed for the last time: its dead letter settles it.
            None if model.failures.get(&seq) == Some(&MAX_ATTEMPTS) => Settled::Already,
            _ => Settled::Done,
        };
        let number = by_number.then_some(number);
        let settled = self.state.ack(member, seq, number, self.now_ms);
        // After a restart the group may not have read that far yet.
        if settled == Settled::Unknown {
            prop_assert!(seq > self.state.head());
            return Ok(());
        }
        prop_assert_eq!(settled, expected, "ack of {}", seq);
        if settled == Settled::Done {
            model.leases.remove(&seq);
            model.settled.insert(seq);
        }
        Ok(())
    }

    fn nack(
        &mut self,
        delivery: prop::sample::Index,
        delay_ms: Option<u64>,
    ) -> Result<(), TestCaseError> {
        let Some(Given {
            member,
            seq,
            number,
        }) = self.pick(delivery)
        else {
            return Ok(());
        };
        let retry = delay_ms.map_or(Retry::Backoff, |delay_ms| Retry::After { delay_ms });
        let settled = self
            .state
            .nack(member, seq, Some(number), "no", retry, self.now_ms);
        let held = self.model.leases.get(&seq);
        let is_mine = held
            .is_some_and(|&(holder, delivered, _)| (holder, delivered) == (member, number))
            && !self.model.pinned.contains(&seq);
        prop_assert_eq!(settled == Settled::Done, is_mine);
        if is_mine {
            self.model.fail(seq);
        }
        Ok(())
    }

    fn extend(
        &mut self,
        delivery: prop::sample::Index,
        extend_ms: u64,
    ) -> Result<(), TestCaseError> {
        let Some(Given {
            member,
            seq,
            number,
        }) = self.pick(delivery)
        else {
            return Ok(());
        };
        let settled = self
            .state
            .extend(member, seq, Some(number), extend_ms, self.now_ms);
        match self.model.leases.get_mut(&seq) {
            Some((holder, delivered, deadline_ms)) if (*holder, *delivered) == (member, number) => {
                prop_assert_eq!(settled, Settled::Done);
                *deadline_ms = self.now_ms + extend_ms.max(1_000);
            }
            Some(_) => prop_assert_eq!(settled, Settled::LeaseLost),
            None => prop_assert_eq!(settled, Settled::Unknown),
        }
        Ok(())
    }

    fn advance(&mut self, by_ms: u64) {
        self.now_ms += by_ms;
        self.state.tick(self.now_ms);
        let leases = self.model.leases.iter();
        let lapsed = leases.filter(|(seq, (.., deadline_ms))| {
            *deadline_ms <= self.now_ms && !self.model.pinned.contains(seq)
        });
        for seq in lapsed.map(|(&seq, _)| seq).collect::<Vec<_>>() {
            self.model.fail(seq);
        }
    }

    fn disconnect(&mut self, place: usize, untaken: usize) {
        let member = self.members[place];
        let held: Vec<(u64, u64)> = self
            .model
            .leases
            .iter()
            .filter(|(seq, (holder, ..))| *holder == member && !self.model.pinned.contains(seq))
            .map(|(&seq, &(_, number, _))| (seq, number))
            .collect();
        let (unseen, seen) = held.split_at(untaken.min(held.len()));
        self.state.release(member, unseen);
        self.state.leave(member, "gone", self.now_ms);
        for (seq, _) in unseen {
            self.model.leases.remove(seq);
        }
        seen.iter().for_each(|(seq, _)| self.model.fail(*seq));
        self.delivered
            .retain(|delivered| !unseen.contains(&(delivered.seq, delivered.number)));
        self.members[place] = self.next_member;
        self.state.join(
            self.next_member,
            format!("member-{}", self.next_member).into(),
        );
        self.next_member += 1;
    }

    /// A dead letter is written atomically with the record that settles its event, or not at all.
    fn dead_letter(&mut self, succeeds: bool) {
        if self.dead_letter.is_empty() {
            self.dead_letter = self
                .state
                .take_dead_lettering(2)
                .into_iter()
                .map(|(seq, _)| seq)
                .collect();
            return;
        }
        if self.writing.is_some() {
            return;
        }
        let seqs = std::mem::take(&mut self.dead_letter);
        if succeeds {
            let record = self.state.to_record(&seqs).to_bytes().to_vec();
            self.state.dead_lettered(&seqs, self.now_ms);
            self.model.dead.extend(&seqs);
            self.flushed = (record, self.model.clone());
        } else {
            self.state.dead_letter_failed(&seqs);
        }
    }

    fn flush(&mut self) {
        if self.writing.is_some() {
            return;
        }
        let record = self.state.to_record(&[]).to_bytes().to_vec();
        self.flushed = (record, self.model.clone());
    }

    /// A crash: what was not flushed is forgotten, and the deliveries under way count.
    fn restart(&mut self, written: bool) -> Result<(), TestCaseError> {
        if let Some(writing) = self.writing.take().filter(|_| written) {
            for seq in writing.ack_publishes.concat() {
                prop_assert!(self.outputs.insert(seq), "{seq} has two outputs");
            }
            self.flushed = (writing.record, writing.model);
        }
        self.ack_publishes.clear();
        let record = GroupRecord::from_bytes(&self.flushed.0).map_err(TestCaseError::fail)?;
        let again = GroupRecord::from_bytes(&record.to_bytes()).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&record, &again);
        let rules = rules(1, Ordering::None, ExhaustedPolicy::DeadLetter);
        let dead = std::mem::take(&mut self.model.dead);
        self.state = GroupState::from_record(record, rules, self.now_ms);
        self.model = self.flushed.1.clone();
        self.model.pinned.clear();
        prop_assert!(
            self.outputs.is_subset(&self.model.settled),
            "an event that has an output comes again"
        );
        prop_assert_eq!(
            &self.model.dead,
            &dead,
            "a dead letter is never forgotten nor written twice"
        );
        let leased: Vec<u64> = self.model.leases.keys().copied().collect();
        leased.into_iter().for_each(|seq| self.model.fail(seq));
        self.dead_letter.clear();
        self.delivered.clear();
        for member in &mut self.members {
            *member = self.next_member;
            self.state.join(*member, "again".into());
            self.next_member += 1;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let model = &self.model;
        let cursor = self.state.cursor();
        for seq in 1..=cursor {
            let settled = model.settled.contains(&seq) || model.dead.contains(&seq);
            prop_assert!(settled, "the cursor {cursor} is beyond {seq}");
        }
        prop_assert_eq!(self.state.counts().in_flight, model.leases.len() as u64);
        for member in self.members {
            let held = model
                .leases
                .values()
                .filter(|(holder, ..)| *holder == member)
                .count();
            prop_assert_eq!(self.state.held_by(member), held);
        }
        prop_assert!(self.state.timers.len() <= 64 + 2 * self.state.timed + 60);
        Ok(())
    }

    /// Everybody works from now on: in the end all is settled or dead.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        while self.writing.is_some() || !self.ack_publishes.is_empty() {
            self.op(Op::Write { count: 9 })?;
            self.op(Op::Complete { succeeds: true })?;
        }
        for _ in 0..self.log.len() * 4 + 40 {
            self.op(Op::Advance {
                by_ms: ACK_TIMEOUT_MS,
            })?;
            self.op(Op::DeadLetter { succeeds: true })?;
            self.op(Op::DeadLetter { succeeds: true })?;
            self.op(Op::Deliver {
                member: 0,
                count: 100,
            })?;
            let held: Vec<u64> = self.model.leases.keys().copied().collect();
            for seq in held {
                let member = self.model.leases[&seq].0;
                self.state.ack(member, seq, None, self.now_ms);
                self.model.leases.remove(&seq);
                self.model.settled.insert(seq);
            }
        }
        prop_assert_eq!(self.state.cursor(), self.log.len() as u64);
        for seq in 1..=self.log.len() as u64 {
            let settled = self.model.settled.contains(&seq) || self.model.dead.contains(&seq);
            prop_assert!(settled, "{} is lost", seq);
        }
        prop_assert_eq!(self.state.lag(1, self.log.len() as u64), 0);
        prop_assert!(self.state.to_record(&[]).settled.is_empty());
        prop_assert_eq!(self.state.next_due(), None);
        Ok(())
    }
}

impl Model {
    fn fail(&mut self, seq: u64) {
        self.leases.remove(&seq);
        *self.failures.entry(seq).or_default() += 1;
    }

    fn settle(&mut self, seq: u64) {
        self.pinned.remove(&seq);
        self.leases.remove(&seq);
        self.settled.insert(seq);
    }
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (prop::option::of(0..KEYS.len()), any::<bool>(), prop::bool::weighted(0.9))
            .prop_map(|(key, client_id, wanted)| Op::Publish { key, client_id, wanted }),
        6 => (0u64..2, 1usize..6).prop_map(|(member, count)| Op::Deliver { member, count }),
        6 => (index(), any::<bool>()).prop_map(|(delivery, by_number)| Op::Ack { delivery, by_number }),
        4 => (index(), prop::option::of(0u64..100)).prop_map(|(delivery, delay_ms)| Op::Nack { delivery, delay_ms }),
        1 => (index(), 0u64..60_000).prop_map(|(delivery, extend_ms)| Op::Extend { delivery, extend_ms }),
        4 => prop_oneof![0u64..100, 10_000u64..40_000].prop_map(|by_ms| Op::Advance { by_ms }),
        1 => (0u64..2, 0usize..4).prop_map(|(member, untaken)| Op::Disconnect { member, untaken }),
        2 => any::<bool>().prop_map(|succeeds| Op::DeadLetter { succeeds }),
        4 => (index(), prop::collection::vec(index(), 0..3), any::<bool>())
            .prop_map(|(delivery, more, by_number)| Op::Take { delivery, more, by_number }),
        1 => (index(), 0u64..2).prop_map(|(event, member)| Op::TakeAny { event, member }),
        4 => (1usize..4).prop_map(|count| Op::Write { count }),
        3 => prop::bool::weighted(0.7).prop_map(|succeeds| Op::Complete { succeeds }),
        1 => Just(Op::Flush),
        1 => any::<bool>().prop_map(|written| Op::Restart { written }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn keeps_the_contract(by_key in any::<bool>(), ops in prop::collection::vec(op(), 0..120)) {
        let ordering = if by_key { Ordering::Key } else { Ordering::None };
        let mut world = World::new(ordering);
        for op in ops {
            world.op(op)?;
        }
        world.finish()?;
    }
}
