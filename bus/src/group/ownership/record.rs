//! What is stored of nodes and owners.

use super::claim::Claim;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the keys of nodes begin with.
pub(super) const NODE_PREFIX: &str = "node/";

/// The owner of a group, in the group's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerRecord {
    pub(crate) node: u64,
    pub(crate) boot: u64,
    /// Grows with each change of the owner.
    pub(crate) epoch: u64,
    /// Up to here it may have handed events out.
    pub(crate) claimed_to: u64,
    /// No lease of it is longer than this.
    pub(crate) hold_ms: u64,
    /// What members of earlier owners may still hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<Claim>,
    /// It has let go of the group, and its own members hold nothing.
    #[serde(default)]
    pub(crate) released: bool,
    /// Nodes whose members it serves: they may hold something though this owner is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) relays: Vec<Via>,
    /// Whose members the `held` ones are. `None` where that is not known, so that only time frees what is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) awaited: Option<Vec<Via>>,
}

/// A node's process whose members may hold events of a group that it does not own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Via {
    pub(crate) node: u64,
    pub(crate) boot: u64,
}

impl OwnerRecord {
    /// Whose members may hold what this owner, or one before it, has handed out: its own with `grace`, and those that it
    /// served on other nodes.
    pub(crate) fn holders(&self, grace: bool) -> BTreeSet<Via> {
        let own = Via {
            node: self.node,
            boot: self.boot,
        };
        let awaited = self.awaited.iter().flatten().chain(&self.relays).copied();
        awaited.chain(grace.then_some(own)).collect()
    }

    /// What members of earlier owners may still hold, and of this one with `grace`. The topic's tail is that of a look at
    /// which this owner had been silent for so long that it was suspended: what came later it cannot have handed out,
    /// though it may have claimed it.
    pub(crate) fn held(&self, grace: bool, tail_seq: u64) -> Option<Claim> {
        let own = Claim {
            to_seq: self.claimed_to.min(tail_seq),
            hold_ms: self.hold_ms,
        };
        match (self.held, grace) {
            (Some(held), true) => Some(held.max(own)),
            (held, true) => held.or(Some(own)),
            (held, false) => held,
        }
    }
}

/// A node that is alive as long as this changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(crate) struct NodeRecord {
    pub(crate) boot: u64,
    pub(crate) beat: u64,
    /// When the beat was sent, by the node's own clock, in epoch milliseconds. Only people compare it.
    #[serde(default)]
    pub(crate) sent_ms: u64,
    /// How many groups it relays its members of to other nodes.
    #[serde(default)]
    pub(crate) relayed_groups: u64,
    /// How many groups the node serves.
    #[serde(default)]
    pub(crate) groups: u64,
    /// The last commit of the shared log that was in the node's copy.
    #[serde(default)]
    pub(crate) applied: u64,
    /// How many commits that the node had heard of were not in it yet.
    #[serde(default)]
    pub(crate) lag: u64,
    /// Where its clients reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// From where it can be told whether its process has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
}

/// The key of a node's record.
pub(super) fn node_key(node: u64) -> Arc<str> {
    format!("{NODE_PREFIX}{node:016x}").into()
}

/// The node that a key is of.
pub(super) fn parse_node_key(key: &str) -> Option<u64> {
    u64::from_str_radix(key.strip_prefix(NODE_PREFIX)?, 16).ok()
}

impl NodeRecord {
    pub(super) fn to_bytes(&self) -> Arc<[u8]> {
        // Strings and numbers are always written.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}
