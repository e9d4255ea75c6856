//! A seeded simulation of three nodes, their store and the members of one group, on any of the nodes: kills, pauses, nodes cut
//! off from the store, answers that are lost, clocks apart, and relays that tell the next owner what their members hold. It drives the same pure functions as the owner does, and counts leases that
//! are given while another one of the same event is live.

mod model;
mod relays;

use super::record::{NodeRecord, OwnerRecord};
use super::validity::Validity;
use super::watch::{Decision, Watch, decide};
use super::{BEAT_MS, Claim, Claims, Via, grace_ms};
use model::{Group, Handing, Live, Node, Outcome, Owned, Request, Store, What};
use prombus_store::conformance::Random;
use std::collections::{BTreeMap, BTreeSet};

const NODES: usize = 3;
/// How long the simulation goes on, and in what steps.
const RUN_MS: u64 = 30_000;
const STEP_MS: u64 = 10;
/// How long leases are.
const LEASE_MS: u64 = 3_000;
/// How many seeds run where nothing else is asked for.
const SEEDS: u64 = 2_000;

struct World {
    random: Random,
    now_ms: u64,
    store: Store,
    nodes: Vec<Node>,
    live: BTreeMap<u64, Vec<Live>>,
    given: u64,
    doubled: Vec<String>,
    takeovers: u64,
    /// How often a lease went on under the next owner.
    adopted: u64,
    /// Whether nodes can tell that the process of another one has ended.
    has_probe: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let node = |at: usize, random: &mut Random| Node {
            id: at as u64 + 1,
            boot: random.number(),
            rate: 990 + random.below(21),
            offset_ms: random.below(1_000_000),
            is_alive: true,
            restart_ms: 0,
            paused_until_ms: 0,
            cut_until_ms: 0,
            validity: Validity::default(),
            watch: Watch::default(),
            beat: 0,
            next_beat_ms: 0,
            next_look_ms: random.below(500),
            requests: Vec::new(),
            owned: None,
            handing_out: None,
            linked_epoch: 0,
        };
        let nodes = (0..NODES).map(|at| node(at, &mut random)).collect();
        Self {
            random,
            now_ms: 0,
            store: Store {
                tail: 200,
                ..Store::default()
            },
            nodes,
            live: BTreeMap::new(),
            given: 0,
            doubled: Vec::new(),
            takeovers: 0,
            adopted: 0,
            has_probe: seed.is_multiple_of(2),
        }
    }

    fn run(&mut self) {
        while self.now_ms < RUN_MS {
            self.now_ms += STEP_MS;
            if self.random.one_in(20) {
                self.store.tail += self.random.below(5);
            }
            self.fault();
            for at in 0..NODES {
                self.reach_store(at);
                let node = &mut self.nodes[at];
                if !node.is_alive {
                    if node.restart_ms <= self.now_ms {
                        self.restart(at);
                    }
                    continue;
                }
                if node.paused_until_ms > self.now_ms {
                    continue;
                }
                self.wake(at);
                self.answers(at);
                self.send(at);
                self.acknowledge(at);
                self.hand_out(at);
                self.report(at);
            }
            self.expire();
        }
    }

    /// Something goes wrong with a node now and then.
    fn fault(&mut self) {
        if !self.random.one_in(150) {
            return;
        }
        let at = self.random.below(NODES as u64) as usize;
        let length_ms = 100 + self.random.below(6_000);
        let kind = self.random.below(3);
        let until_ms = self.now_ms + length_ms;
        let node = &mut self.nodes[at];
        match kind {
            0 if node.is_alive => {
                // Its members lose their connections, and with them their leases.
                let boot = node.boot;
                node.is_alive = false;
                node.restart_ms = until_ms;
                node.owned = None;
                node.handing_out = None;
                for leases in self.live.values_mut() {
                    leases.retain(|lease| lease.boot != boot);
                }
            }
            1 => node.paused_until_ms = until_ms,
            _ => node.cut_until_ms = until_ms,
        }
    }

    fn restart(&mut self, at: usize) {
        let boot = self.random.number();
        let node = &mut self.nodes[at];
        node.boot = boot;
        node.is_alive = true;
        node.paused_until_ms = 0;
        node.validity = Validity::default();
        node.watch = Watch::default();
        node.requests.clear();
        node.next_beat_ms = self.now_ms;
        node.next_look_ms = self.now_ms;
    }

    fn latency(&mut self) -> u64 {
        if self.random.one_in(50) {
            self.random.below(900)
        } else {
            self.random.below(30)
        }
    }

    fn request(&mut self, at: usize, what: What) {
        let at_ms = self.now_ms + self.latency();
        let answer_ms = at_ms + self.latency();
        self.nodes[at].requests.push(Request {
            at_ms,
            answer_ms,
            what,
            outcome: None,
        });
    }

    /// Requests reach the store, whether their node still lives or not.
    fn reach_store(&mut self, at: usize) {
        let is_cut = self.nodes[at].cut_until_ms > self.now_ms;
        let (id, boot) = (self.nodes[at].id, self.nodes[at].boot);
        let mut requests = std::mem::take(&mut self.nodes[at].requests);
        requests.sort_by_key(|request| request.at_ms);
        for request in &mut requests {
            if request.outcome.is_some() || request.at_ms > self.now_ms {
                continue;
            }
            if is_cut {
                // It never arrives, and so does the answer; the node gives up on it.
                request.at_ms = u64::MAX;
                continue;
            }
            let outcome = match &request.what {
                What::Beat { beat, .. } => {
                    let record = NodeRecord {
                        boot,
                        beat: *beat,
                        ..NodeRecord::default()
                    };
                    self.store.nodes.insert(id, record);
                    Outcome::Beat
                }
                What::Look { .. } => Outcome::Look {
                    nodes: self.store.nodes.clone(),
                    group: Group {
                        owner: self.store.owner.clone(),
                        settled: self.store.settled.clone(),
                        version: self.store.version,
                        tail: self.store.tail,
                    },
                },
                What::Write {
                    owner,
                    settled,
                    expect,
                    ..
                } => Outcome::Written((self.store.version == *expect).then(|| {
                    self.store.version += 1;
                    self.store.owner = Some(owner.clone());
                    self.store.settled = settled.clone();
                    self.store.version
                })),
            };
            request.outcome = Some(outcome);
        }
        self.nodes[at].requests = requests;
    }

    /// What was decided before a pause happens after it.
    fn wake(&mut self, at: usize) {
        if let Some(handing) = self.nodes[at].handing_out.take() {
            self.give(at, handing);
        }
    }

    fn answers(&mut self, at: usize) {
        let is_cut = self.nodes[at].cut_until_ms > self.now_ms;
        let now_ms = self.now_ms;
        let requests = std::mem::take(&mut self.nodes[at].requests);
        let (due, open): (Vec<_>, Vec<_>) = requests
            .into_iter()
            .partition(|request| request.answer_ms <= now_ms);
        self.nodes[at].requests = open;
        for request in due {
            let outcome = request.outcome.filter(|_| !is_cut);
            self.answer(at, request.what, outcome);
        }
    }

    fn answer(&mut self, at: usize, what: What, outcome: Option<Outcome>) {
        let node = &mut self.nodes[at];
        let clock_ms = node.clock_ms(self.now_ms);
        match (what, outcome) {
            (What::Beat { sent_ms, .. }, Some(Outcome::Beat)) => {
                node.validity.acknowledged(sent_ms, clock_ms);
            }
            (What::Look { began_ms }, Some(Outcome::Look { nodes, group })) => {
                node.watch.look(nodes, began_ms, clock_ms);
                self.consider(at, group);
            }
            (What::Look { .. }, _) => node.watch.failed(),
            (
                What::Write {
                    owner,
                    settled,
                    stretch,
                    hold_back,
                    awaited,
                    ..
                },
                Some(Outcome::Written(Some(version))),
            ) => match &mut node.owned {
                Some(owned) => {
                    owned.written_relays = owner.relays.iter().copied().collect();
                    owned.version = version;
                    owned.claims.confirm();
                    owned.stretch = stretch;
                }
                None => {
                    self.takeovers += 1;
                    let mut claims = Claims::after(Claim {
                        to_seq: owner.claimed_to,
                        hold_ms: owner.hold_ms,
                    });
                    claims.confirm();
                    node.owned = Some(Owned {
                        version,
                        epoch: owner.epoch,
                        stretch,
                        claims,
                        settled,
                        leased: BTreeMap::new(),
                        hold_back,
                        head: 0,
                        relays: BTreeSet::new(),
                        written_relays: BTreeSet::new(),
                        awaited,
                    });
                    node.linked_epoch = owner.epoch;
                    self.adopt(at, at);
                }
            },
            // Another node has it, or it is not known; either way this one stops.
            (What::Write { .. }, _) => node.owned = None,
            (What::Beat { .. }, _) => {}
        }
    }

    /// Whether to take the group over, after a look.
    fn consider(&mut self, at: usize, group: Group) {
        let node = &self.nodes[at];
        let clock_ms = node.clock_ms(self.now_ms);
        let Some(stretch) = node.validity.stretch(clock_ms) else {
            return;
        };
        if node.owned.is_some() || node.is_writing() {
            return;
        }
        let (mut epoch, mut held, mut awaited) = (0, None, None);
        if let Some(owner) = group.owner {
            let standing = node.watch.standing(owner.node, owner.boot);
            let Decision::Take { grace } = decide(&owner, node.me(), standing) else {
                return;
            };
            epoch = owner.epoch;
            let mut holders = owner.holders(grace);
            holders.retain(|via| via.node != node.id && !self.is_gone(*via));
            held = if holders.is_empty() {
                None
            } else {
                owner.held(true, group.tail)
            };
            awaited = Some(holders);
        }
        let node = &self.nodes[at];
        let hold_back = held.map(|held| (held, clock_ms + grace_ms(held.hold_ms)));
        let mut claims = Claims::after(held.unwrap_or_default());
        claims.plan(0, self.store.tail, LEASE_MS);
        let Claim { to_seq, hold_ms } = claims.planned();
        let owner = OwnerRecord {
            node: node.id,
            boot: node.boot,
            epoch: epoch + 1,
            claimed_to: to_seq,
            hold_ms,
            held,
            released: false,
            relays: Vec::new(),
            awaited: held
                .and(awaited.as_ref())
                .map(|awaited| awaited.iter().copied().collect()),
        };
        let what = What::Write {
            owner,
            settled: group.settled,
            expect: group.version,
            stretch,
            hold_back,
            awaited,
        };
        self.request(at, what);
    }

    /// Beats, looks and writes that are due.
    fn send(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let clock_ms = node.clock_ms(self.now_ms);
        if node.next_beat_ms <= self.now_ms {
            node.next_beat_ms = self.now_ms + BEAT_MS;
            node.beat += 1;
            let beat = node.beat;
            let sent_ms = clock_ms;
            self.request(at, What::Beat { beat, sent_ms });
        }
        let node = &mut self.nodes[at];
        if node.next_look_ms <= self.now_ms {
            node.next_look_ms = self.now_ms + 250;
            let began_ms = clock_ms;
            self.request(at, What::Look { began_ms });
        }
        let node = &mut self.nodes[at];
        let stretch = node.validity.stretch(clock_ms);
        let tail = self.store.tail;
        let is_writing = node.is_writing();
        let Some(owned) = node.owned.as_mut().filter(|_| !is_writing) else {
            return;
        };
        let Some(stretch) = stretch else {
            return;
        };
        owned.claims.plan(owned.head, tail, LEASE_MS);
        // Something was settled or claimed, or the ownership has to be confirmed.
        let has_new_relay = !owned.relays.is_subset(&owned.written_relays);
        let is_raised = owned.claims.is_raised() || has_new_relay;
        if owned.stretch == stretch && !is_raised && !self.random.one_in(10) {
            return;
        }
        let (settled, expect) = (owned.settled.clone(), owned.version);
        let node = &self.nodes[at];
        let Some(owned) = &node.owned else {
            return;
        };
        let what = What::Write {
            owner: node.owner_record(owned, self.now_ms),
            settled,
            expect,
            stretch,
            hold_back: None,
            awaited: None,
        };
        self.request(at, what);
    }

    /// Members of a node acknowledge what they hold, where the owner that gave it still has it.
    fn acknowledge(&mut self, at: usize) {
        let now_ms = self.now_ms;
        let node = &mut self.nodes[at];
        let boot = node.boot;
        let clock_ms = node.clock_ms(now_ms);
        let is_valid = |owned: &Owned| node.validity.stretch(clock_ms) == Some(owned.stretch);
        let is_valid = node.owned.as_ref().is_some_and(is_valid);
        for (seq, leases) in &mut self.live {
            leases.retain(|lease| {
                if lease.node != at || lease.boot != boot || lease.ack_ms > now_ms {
                    return true;
                }
                if let Some(owned) = node.owned.as_mut().filter(|_| is_valid)
                    && owned.leased.remove(seq).is_some()
                {
                    owned.settled.insert(*seq);
                    return false;
                }
                true
            });
        }
    }

    /// An owner gives the next event to a member.
    fn hand_out(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let clock_ms = node.clock_ms(self.now_ms);
        let stretch = node.validity.stretch(clock_ms);
        let Some(owned) = &mut node.owned else {
            return;
        };
        if stretch != Some(owned.stretch) || owned.claims.written().hold_ms < LEASE_MS {
            return;
        }
        owned
            .leased
            .retain(|_, deadline_ms| *deadline_ms > clock_ms);
        if owned.leased.len() >= 8 {
            return;
        }
        let held = |seq: u64| match owned.hold_back {
            Some((held, until_ms)) => seq <= held.to_seq && clock_ms < until_ms,
            None => false,
        };
        let last = self.store.tail.min(owned.claims.written().to_seq);
        let is_free = |seq: &u64| {
            !owned.settled.contains(seq) && !owned.leased.contains_key(seq) && !held(*seq)
        };
        let Some(seq) = (1..=last).find(is_free) else {
            return;
        };
        let to = self.random.below(NODES as u64) as usize;
        let epoch = self.nodes[at].owned.as_ref().map_or(0, |owned| owned.epoch);
        let (is_alive, boot) = (self.nodes[to].is_alive, self.nodes[to].boot);
        let via = Via {
            node: self.nodes[to].id,
            boot,
        };
        if !is_alive || self.nodes[to].linked_epoch > epoch {
            return;
        }
        let Some(owned) = &mut self.nodes[at].owned else {
            return;
        };
        if to != at && !owned.written_relays.contains(&via) {
            owned.relays.insert(via);
            return;
        }
        owned.head = owned.head.max(seq);
        let deadline_ms = clock_ms + LEASE_MS;
        owned.leased.insert(seq, deadline_ms);
        let handing = Handing {
            seq,
            deadline_ms,
            epoch,
            to,
            boot,
        };
        if self.random.one_in(200) {
            // The process is stopped after it decided and before it acts.
            let until_ms = self.now_ms + self.random.below(6_000);
            let node = &mut self.nodes[at];
            node.paused_until_ms = until_ms;
            node.handing_out = Some(handing);
            return;
        }
        self.give(at, handing);
    }

    fn give(&mut self, at: usize, handing: Handing) {
        let Handing {
            seq,
            deadline_ms,
            epoch,
            to,
            boot,
        } = handing;
        let receiver = &self.nodes[to];
        let is_void = receiver.boot != boot || !receiver.is_alive || receiver.linked_epoch > epoch;
        let node = &self.nodes[at];
        let clock_ms = node.clock_ms(self.now_ms);
        if clock_ms >= deadline_ms || is_void {
            // A member that gets it takes it for expired.
            return;
        }
        let left_ms = (deadline_ms - clock_ms) * 1_000 / node.rate;
        self.given += 1;
        let others = self.live.entry(seq).or_default();
        others.retain(|other| other.deadline_ms > self.now_ms);
        if let Some(other) = others.first() {
            let doubled = format!(
                "event {seq} at {} ms by node {at}, while node {} has it until {}",
                self.now_ms, other.node, other.deadline_ms
            );
            self.doubled.push(doubled);
        }
        let ack_ms = self.now_ms + self.random.below(4_000);
        let deadline_ms = self.now_ms + left_ms;
        self.live.entry(seq).or_default().push(Live {
            node: to,
            boot,
            deadline_ms,
            ack_ms,
        });
    }

    fn expire(&mut self) {
        let now_ms = self.now_ms;
        for leases in self.live.values_mut() {
            leases.retain(|lease| lease.deadline_ms > now_ms);
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    match number("PROMBUS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PROMBUS_SEEDS").unwrap_or(SEEDS),
    }
}

#[test]
fn no_event_has_two_live_leases_whatever_happens_to_nodes() {
    let (mut given, mut takeovers, mut adopted) = (0, 0, 0);
    for seed in seeds() {
        let mut world = World::new(seed);
        world.run();
        assert!(world.doubled.is_empty(), "seed {seed}: {:?}", world.doubled);
        given += world.given;
        takeovers += world.takeovers;
        adopted += world.adopted;
    }
    // It would prove nothing if little happened.
    let count = seeds().end - seeds().start;
    assert!(
        given > 20 * count && takeovers > count && adopted > count,
        "{given} leases, {takeovers} takeovers, {adopted} adopted"
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut world = World::new(seed);
        world.run();
        (world.given, world.takeovers, world.store.version)
    };
    for seed in 0..5 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
