//! What the simulation consists of: the store, requests on their way, nodes, and leases as members have them.

use crate::group::ownership::record::{NodeRecord, OwnerRecord};
use crate::group::ownership::validity::Validity;
use crate::group::ownership::watch::Watch;
use crate::group::ownership::{Claim, Claims, Via};
use prombus_store::NodeBoot;
use std::collections::{BTreeMap, BTreeSet};

/// What a look finds of the group.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) owner: Option<OwnerRecord>,
    pub(super) settled: BTreeSet<u64>,
    pub(super) version: u64,
    pub(super) tail: u64,
}

/// The store, in the order of its commits.
#[derive(Default)]
pub(super) struct Store {
    pub(super) nodes: BTreeMap<u64, NodeRecord>,
    pub(super) owner: Option<OwnerRecord>,
    pub(super) settled: BTreeSet<u64>,
    pub(super) version: u64,
    pub(super) tail: u64,
}

/// What a node waits for: when it reaches the store, and when the answer comes.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) at_ms: u64,
    pub(super) answer_ms: u64,
    pub(super) what: What,
    /// What came of it; `None` before it reached the store.
    pub(super) outcome: Option<Outcome>,
}

#[derive(Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "a node has a few of them under way"
)]
pub(super) enum What {
    Beat {
        beat: u64,
        sent_ms: u64,
    },
    Look {
        began_ms: u64,
    },
    Write {
        owner: OwnerRecord,
        settled: BTreeSet<u64>,
        expect: u64,
        stretch: u64,
        hold_back: Option<(Claim, u64)>,
        awaited: Option<BTreeSet<Via>>,
    },
}

#[derive(Clone)]
pub(super) enum Outcome {
    Beat,
    Look {
        nodes: BTreeMap<u64, NodeRecord>,
        group: Group,
    },
    Written(Option<u64>),
}

/// A group as its owner has it in memory.
pub(super) struct Owned {
    pub(super) version: u64,
    pub(super) epoch: u64,
    pub(super) stretch: u64,
    pub(super) claims: Claims,
    pub(super) settled: BTreeSet<u64>,
    /// Events that are leased, by this node's clock.
    pub(super) leased: BTreeMap<u64, u64>,
    pub(super) hold_back: Option<(Claim, u64)>,
    pub(super) head: u64,
    /// Nodes whose members it serves, and those of them that are in the record.
    pub(super) relays: BTreeSet<Via>,
    pub(super) written_relays: BTreeSet<Via>,
    /// The nodes that are to tell what their members hold.
    pub(super) awaited: Option<BTreeSet<Via>>,
}

pub(super) struct Node {
    pub(super) id: u64,
    pub(super) boot: u64,
    pub(super) rate: u64,
    pub(super) offset_ms: u64,
    pub(super) is_alive: bool,
    pub(super) restart_ms: u64,
    pub(super) paused_until_ms: u64,
    pub(super) cut_until_ms: u64,
    pub(super) validity: Validity,
    pub(super) watch: Watch,
    pub(super) beat: u64,
    pub(super) next_beat_ms: u64,
    pub(super) next_look_ms: u64,
    pub(super) requests: Vec<Request>,
    pub(super) owned: Option<Owned>,
    /// Decided before a pause, and handed out after it.
    pub(super) handing_out: Option<Handing>,
    /// The latest owner that it has told what its members hold: what earlier ones give it is void.
    pub(super) linked_epoch: u64,
}

/// A lease that is given.
#[derive(Clone, Copy)]
pub(super) struct Handing {
    pub(super) seq: u64,
    /// By the owner's clock.
    pub(super) deadline_ms: u64,
    pub(super) epoch: u64,
    /// The node that the member is on, and its boot.
    pub(super) to: usize,
    pub(super) boot: u64,
}

/// A lease as its member has it.
pub(super) struct Live {
    pub(super) node: usize,
    pub(super) boot: u64,
    pub(super) deadline_ms: u64,
    pub(super) ack_ms: u64,
}

impl Node {
    /// Its own monotonic clock, which may be up to a percent off.
    pub(super) fn clock_ms(&self, now_ms: u64) -> u64 {
        self.offset_ms + now_ms * self.rate / 1_000
    }

    pub(super) fn me(&self) -> NodeBoot {
        NodeBoot {
            node: self.id,
            boot: self.boot,
        }
    }

    pub(super) fn owner_record(&self, owned: &Owned, now_ms: u64) -> OwnerRecord {
        let Claim { to_seq, hold_ms } = owned.claims.planned();
        let clock_ms = self.clock_ms(now_ms);
        let held = owned.hold_back.filter(|(_, until_ms)| clock_ms < *until_ms);
        OwnerRecord {
            node: self.id,
            boot: self.boot,
            epoch: owned.epoch,
            claimed_to: to_seq,
            hold_ms,
            held: held.map(|(claim, _)| claim),
            released: false,
            relays: owned.relays.iter().copied().collect(),
            awaited: held
                .and(owned.awaited.as_ref())
                .map(|awaited| awaited.iter().copied().collect()),
        }
    }

    pub(super) fn is_writing(&self) -> bool {
        let is_write = |request: &Request| matches!(request.what, What::Write { .. });
        self.requests.iter().any(is_write)
    }
}
