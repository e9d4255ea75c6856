//! Partitions of a group against a model: members come, go, take, settle and confirm at random, and after each step no two
//! members work on one partition, every event of a held partition gets on, and the events of a key come in order.

use super::partitions::AssignmentChange;
use super::tests::rules;
use super::*;
use crate::partition::partition_of;
use prombus_interface::Ordering;
use prombus_store::{Batch, Draft, GeneratedId, StoredEvent};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const PARTITIONS: u32 = 4;
const ACK_TIMEOUT_MS: u64 = 30_000;

#[derive(Debug, Clone)]
enum Op {
    Publish {
        key: u8,
    },
    PublishMany {
        key: u8,
    },
    Join,
    Leave {
        member: prop::sample::Index,
    },
    Take {
        member: prop::sample::Index,
        count: usize,
    },
    Ack {
        delivery: prop::sample::Index,
    },
    Nack {
        delivery: prop::sample::Index,
    },
    Confirm {
        member: prop::sample::Index,
    },
    Advance {
        by_ms: u64,
    },
    Repartition {
        count: u32,
    },
    Seek {
        cursor: prop::sample::Index,
    },
    Restart,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let index = any::<prop::sample::Index>;
    let op = prop_oneof![
        8 => (0..12_u8).prop_map(|key| Op::Publish { key }),
        2 => (0..12_u8).prop_map(|key| Op::PublishMany { key }),
        2 => Just(Op::Join),
        1 => index().prop_map(|member| Op::Leave { member }),
        8 => (index(), 1..4_usize).prop_map(|(member, count)| Op::Take { member, count }),
        6 => index().prop_map(|delivery| Op::Ack { delivery }),
        1 => index().prop_map(|delivery| Op::Nack { delivery }),
        3 => index().prop_map(|member| Op::Confirm { member }),
        2 => (1..40_000_u64).prop_map(|by_ms| Op::Advance { by_ms }),
        1 => (1..7_u32).prop_map(|count| Op::Repartition { count }),
        1 => index().prop_map(|cursor| Op::Seek { cursor }),
        1 => Just(Op::Restart),
    ];
    prop::collection::vec(op, 0..160)
}

#[derive(Debug, Clone)]
struct Held {
    member: MemberId,
    seq: u64,
    number: u64,
    deadline_ms: u64,
}

/// What a member believes.
#[derive(Debug, Default)]
struct Member {
    assigned: BTreeSet<u32>,
    /// Revoked and not confirmed, with the moment when it has to be done at the latest.
    revoked: BTreeMap<u32, u64>,
}

struct World {
    state: GroupState,
    window: usize,
    is_repartitioned: bool,
    now_ms: u64,
    partitions: u32,
    events: Vec<(u8, u32)>,
    members: BTreeMap<MemberId, Member>,
    next_member: MemberId,
    held: Vec<Held>,
    acked: BTreeSet<u64>,
    /// After a change of their number partitions of old events may have two members for as long as leases are.
    last_change_ms: u64,
}

/// A window in which nothing is parked, and one in which much is.
const WINDOWS: [usize; 2] = [1_000, 12];
/// How many events are read for parked partitions at a time.
const PAGE: u64 = 7;

fn group_rules(window: usize) -> Rules {
    let mut rules = rules(100, Ordering::None, ExhaustedPolicy::RetryForever);
    rules.window = window;
    rules.settings.partitioned = true;
    rules.settings.ack_timeout_ms = ACK_TIMEOUT_MS;
    rules.max_lost_attempts = 100;
    rules
}

fn event(seq: u64, key: &str, partition: u32) -> StoredEvent {
    let mut batch = Batch::new();
    let draft = Draft {
        key: Some(key),
        partition: Some(partition),
        payload: "1",
        ..Draft::default()
    };
    batch.publish(&"t".into(), &draft);
    let made = GeneratedId { ms: 1, tag: 7, seq };
    let encoded = batch.events().next().expect("one was added");
    StoredEvent::encode(encoded, &made.to_id(), 1, seq)
}

impl World {
    fn new() -> Self {
        Self::with_window(WINDOWS[0])
    }

    fn with_window(window: usize) -> Self {
        let mut state = GroupState::new(group_rules(window), 0, 0);
        state.set_partitions(Some(PARTITIONS));
        Self {
            state,
            window,
            is_repartitioned: false,
            now_ms: 0,
            partitions: PARTITIONS,
            events: Vec::new(),
            members: BTreeMap::new(),
            next_member: 1,
            held: Vec::new(),
            acked: BTreeSet::new(),
            last_change_ms: 0,
        }
    }

    fn stored(&self, seq: u64) -> StoredEvent {
        let (key, partition) = self.events[seq as usize - 1];
        event(seq, &format!("k{key}"), partition)
    }

    fn partition_of_seq(&self, seq: u64) -> u32 {
        self.events[seq as usize - 1].1 % self.partitions
    }

    /// What the owner does after every step: time, assignments, reading.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        self.state.tick(self.now_ms);
        self.held.retain(|held| held.deadline_ms > self.now_ms);
        for (member, change) in self.state.rebalance(self.now_ms) {
            self.told(member, &change)?;
        }
        self.refill();
        while self.state.read_from() <= self.events.len() as u64 && self.state.window_left() > 0 {
            let seq = self.state.read_from();
            let event = self.stored(seq);
            self.state.offer(event, true, self.now_ms);
            self.state.passed(seq + 1);
        }
        let missing: Vec<u64> = self.state.queues.missing_within(0..u64::MAX).collect();
        for seq in missing {
            let event = self.stored(seq);
            self.state.supply(seq, vec![event], seq + 1, self.now_ms);
        }
        self.check()
    }

    /// Reads for parked partitions, a page at a time.
    fn refill(&mut self) {
        for _ in 0..10 {
            let refills = self.state.partition_refills(|_| true);
            let Some(first) = refills.last() else {
                return;
            };
            let from_seq = first.from_seq;
            let next_seq = (from_seq + PAGE).min(self.events.len() as u64 + 1);
            let events = (from_seq..next_seq).map(|seq| self.stored(seq)).collect();
            let range = (from_seq, next_seq);
            self.state
                .refill_partitions(&refills, range, events, |_| true, self.now_ms);
        }
    }

    fn told(&mut self, member: MemberId, change: &AssignmentChange) -> Result<(), TestCaseError> {
        let Some(known) = self.members.get_mut(&member) else {
            return Ok(());
        };
        for &partition in &change.revoked {
            known.assigned.remove(&partition);
            let due_ms = self.now_ms + ACK_TIMEOUT_MS;
            known.revoked.insert(partition, due_ms);
        }
        for &partition in &change.assigned {
            known.assigned.insert(partition);
            // What it was revoked before is over: nobody had it in between, or it did not say a word in time.
            known.revoked.remove(&partition);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let now_ms = self.now_ms;
        for member in self.members.values_mut() {
            member.revoked.retain(|_, due_ms| *due_ms > now_ms);
        }
        let is_steady = self.now_ms >= self.last_change_ms + ACK_TIMEOUT_MS;
        for partition in 0..self.partitions {
            let holders: Vec<MemberId> = self
                .members
                .iter()
                .filter(|(_, member)| member.assigned.contains(&partition))
                .map(|(&id, _)| id)
                .collect();
            prop_assert!(holders.len() <= 1, "partition {partition}: {holders:?}");
            let mut working: BTreeSet<MemberId> = holders.iter().copied().collect();
            let held = self.held.iter();
            working.extend(
                held.filter(|held| self.partition_of_seq(held.seq) == partition)
                    .map(|held| held.member),
            );
            let members = self.members.iter();
            let revoked = members.filter(|(_, member)| member.revoked.contains_key(&partition));
            working.extend(revoked.map(|(&id, _)| id));
            prop_assert!(
                working.len() <= 1 || !is_steady,
                "partition {partition}: {working:?}"
            );
            let is_free = working.is_empty();
            prop_assert!(
                !is_free || self.members.is_empty(),
                "partition {partition} is nobody's: {:?}",
                self.state.assignments()
            );
        }
        Ok(())
    }

    fn member(&self, index: prop::sample::Index) -> Option<MemberId> {
        let ids: Vec<MemberId> = self.members.keys().copied().collect();
        (!ids.is_empty()).then(|| *index.get(&ids))
    }

    fn take(&mut self, member: MemberId, count: usize) -> Result<(), TestCaseError> {
        let mut leased = Vec::new();
        self.state.lease(member, count, self.now_ms, &mut leased);
        for one in leased {
            let seq = one.event.seq();
            let partition = self.partition_of_seq(seq);
            let known = &self.members[&member];
            prop_assert!(known.assigned.contains(&partition), "{seq} of {partition}");
            prop_assert!(!self.acked.contains(&seq), "{seq} again");
            // Earlier events of the key are done, under way at this member, or come again after a failure.
            let key = self.events[seq as usize - 1].0;
            for earlier in 1..seq {
                let is_of_key = self.events[earlier as usize - 1].0 == key;
                let is_first = one.attempt == 1;
                if is_of_key && is_first && self.partition_of_seq(earlier) == partition {
                    let slot = self.state.unsettled.get(earlier);
                    let is_ready = slot.is_some_and(|slot| slot.stage == slot::Stage::Ready);
                    prop_assert!(!is_ready, "{seq} overtook {earlier}");
                }
                let is_parked =
                    !self.acked.contains(&earlier) && self.state.unsettled.get(earlier).is_none();
                if self.partition_of_seq(earlier) == partition && !self.is_repartitioned {
                    prop_assert!(!is_parked, "{seq} overtook {earlier}, which is parked");
                }
            }
            self.held.push(Held {
                member,
                seq,
                number: one.number,
                deadline_ms: one.deadline_ms,
            });
        }
        Ok(())
    }

    fn confirm(&mut self, member: MemberId) -> Result<(), TestCaseError> {
        let known = self.members.get_mut(&member).expect("it is there");
        let revoked: Vec<u32> = std::mem::take(&mut known.revoked).into_keys().collect();
        self.state.confirm_revoked(member, &revoked);
        // What it still has is told by the state.
        let state = &self.state;
        self.held.retain(|held| {
            state
                .lease_of(held.seq)
                .is_some_and(|lease| lease.number == held.number)
        });
        for held in self.held.iter().filter(|held| held.member == member) {
            let partition = self.events[held.seq as usize - 1].1;
            let is_steady =
                partition < self.partitions && self.now_ms >= self.last_change_ms + ACK_TIMEOUT_MS;
            prop_assert!(!is_steady || !revoked.contains(&partition));
        }
        Ok(())
    }

    fn step(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Publish { key } => {
                let partition = partition_of(&format!("k{key}"), self.partitions);
                self.events.push((key, partition));
            }
            Op::PublishMany { key } => {
                for key in (0..5).map(|more| (key + more * 5) % 12) {
                    self.step(Op::Publish { key })?;
                }
            }
            Op::Join if self.members.len() < 5 => {
                let id = self.next_member;
                self.next_member += 1;
                self.state.join(id, format!("member-{}", id % 7).into());
                self.members.insert(id, Member::default());
            }
            Op::Leave { member } => {
                if let Some(member) = self.member(member) {
                    self.state.leave(member, "left", self.now_ms);
                    self.members.remove(&member);
                    self.held.retain(|held| held.member != member);
                }
            }
            Op::Take { member, count } => {
                if let Some(member) = self.member(member) {
                    self.take(member, count)?;
                }
            }
            Op::Ack { delivery } if !self.held.is_empty() => {
                let held = self.held.remove(delivery.index(self.held.len()));
                let number = Some(held.number);
                let settled = self.state.ack(held.member, held.seq, number, self.now_ms);
                prop_assert_eq!(settled, Settled::Done);
                self.acked.insert(held.seq);
            }
            Op::Nack { delivery } if !self.held.is_empty() => {
                let held = self.held.remove(delivery.index(self.held.len()));
                let number = Some(held.number);
                let retry = Retry::Backoff;
                self.state
                    .nack(held.member, held.seq, number, "no", retry, self.now_ms);
            }
            Op::Confirm { member } => {
                if let Some(member) = self.member(member) {
                    self.confirm(member)?;
                }
            }
            Op::Advance { by_ms } => self.now_ms += by_ms,
            Op::Repartition { count } if count != self.partitions => {
                self.state.set_partitions(Some(count));
                self.partitions = count;
                self.is_repartitioned = true;
                self.last_change_ms = self.now_ms;
            }
            Op::Seek { cursor } => {
                let cursor = cursor.index(self.events.len() + 1) as u64;
                self.state.seek(cursor);
                self.held.clear();
                self.acked.retain(|&seq| seq <= cursor);
                self.acked.extend(1..=cursor);
            }
            Op::Restart => {
                let record = self.state.to_record(&[]);
                self.state = GroupState::from_record(record, group_rules(self.window), self.now_ms);
                self.state.set_partitions(Some(self.partitions));
                self.members.clear();
                self.held.clear();
            }
            _ => {}
        }
        self.settle()
    }

    /// With one member that takes and acknowledges everything, everything is settled in the end.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        for member in self.members.keys().copied().collect::<Vec<_>>() {
            self.state.leave(member, "left", self.now_ms);
        }
        self.members.clear();
        self.held.clear();
        self.step(Op::Join)?;
        let Some(&member) = self.members.keys().next() else {
            return Ok(());
        };
        for _ in 0..2_000 {
            self.take(member, 16)?;
            for held in std::mem::take(&mut self.held) {
                let number = Some(held.number);
                self.state.ack(held.member, held.seq, number, self.now_ms);
                self.acked.insert(held.seq);
            }
            self.now_ms += 60_000;
            self.settle()?;
            if self.acked.len() == self.events.len() {
                break;
            }
        }
        prop_assert_eq!(self.acked.len(), self.events.len());
        prop_assert_eq!(self.state.cursor(), self.events.len() as u64);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_two_members_work_on_one_partition(ops in ops(), window in prop::sample::select(&WINDOWS[..])) {
        let mut world = World::with_window(window);
        for op in ops {
            world.step(op)?;
        }
        world.finish()?;
    }
}

#[test]
fn a_partition_is_handed_over_when_its_holder_confirms() {
    let mut world = World::new();
    world.step(Op::Join).expect("one joins");
    for key in 0..12 {
        world.step(Op::Publish { key }).expect("published");
    }
    world.take(1, 100).expect("all are its own");
    assert_eq!(world.held.len(), 12);
    world.step(Op::Join).expect("another joins");
    let revoked: Vec<u32> = world.members[&1].revoked.keys().copied().collect();
    assert!(!revoked.is_empty(), "names that share the partitions");
    assert!(
        world.members[&2].assigned.is_empty(),
        "not before it is confirmed"
    );
    world.state.confirm_revoked(1, &revoked);
    world.members.get_mut(&1).expect("one").revoked.clear();
    let mine = |seq: u64| revoked.contains(&partition_of_key(seq));
    world.held.retain(|held| !mine(held.seq));
    world.settle().expect("consistent");
    let assigned: Vec<u32> = world.members[&2].assigned.iter().copied().collect();
    assert_eq!(assigned, revoked);
    world.take(2, 100).expect("what the first did not settle");
    assert!(
        world
            .held
            .iter()
            .filter(|held| held.member == 2)
            .all(|held| mine(held.seq))
    );
}

fn partition_of_key(seq: u64) -> u32 {
    partition_of(&format!("k{}", seq - 1), PARTITIONS)
}

#[test]
fn a_member_that_says_nothing_keeps_a_partition_as_long_as_a_lease_is() {
    let mut world = World::new();
    world.step(Op::Join).expect("one joins");
    world.step(Op::Join).expect("another joins");
    assert!(world.members[&2].assigned.is_empty());
    world
        .step(Op::Advance {
            by_ms: ACK_TIMEOUT_MS - 1,
        })
        .expect("time");
    assert!(world.members[&2].assigned.is_empty());
    world.step(Op::Advance { by_ms: 1 }).expect("time");
    assert!(!world.members[&2].assigned.is_empty());
}

#[test]
fn a_member_that_takes_nothing_does_not_fill_the_window() {
    let mut world = World::with_window(WINDOWS[1]);
    world.step(Op::Join).expect("one joins");
    world.step(Op::Join).expect("another joins");
    let by_ms = ACK_TIMEOUT_MS;
    world.step(Op::Advance { by_ms }).expect("both have some");
    let (mut taken, member) = (0, 2);
    for number in 0..600_u32 {
        let key = (number % 12) as u8;
        world.step(Op::Publish { key }).expect("published");
        world.take(member, 100).expect("what is its own");
        for held in std::mem::take(&mut world.held) {
            taken += 1;
            world.step(Op::Publish { key }).expect("published");
            world
                .state
                .ack(held.member, held.seq, Some(held.number), world.now_ms);
            world.acked.insert(held.seq);
        }
    }
    let own: BTreeSet<u32> = world.members[&member].assigned.clone();
    let all =
        (1..=world.events.len() as u64).filter(|&seq| own.contains(&world.partition_of_seq(seq)));
    let all = all.count();
    world.settle().expect("consistent");
    assert!(
        taken > 50 && all <= taken + 2 * WINDOWS[1],
        "it has got all that is its own: {taken}"
    );
    let parked = world.state.stages();
    assert!(
        parked.ready > 10 * WINDOWS[1],
        "the other's wait: {parked:?}"
    );
    assert!(world.state.unsettled.len() <= WINDOWS[1]);
    let record = world.state.to_record(&[]);
    assert!(record.settled.len() <= WINDOWS[1] && record.blocked.len() <= PARTITIONS as usize);
    world.finish().expect("everything is settled in the end");
}
