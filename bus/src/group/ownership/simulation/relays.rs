//! Members on nodes that do not own the group: their nodes tell the next owner what they hold.

use super::{NODES, STEP_MS, World};
use crate::group::ownership::Via;

impl World {
    /// Whether the process of a node is known to have ended.
    pub(super) fn is_gone(&self, via: Via) -> bool {
        let node = self.nodes.iter().find(|node| node.id == via.node);
        node.is_some_and(|node| node.boot != via.boot || !node.is_alive && self.has_probe)
    }

    /// A node whose members another one waits for tells that what they hold.
    pub(super) fn report(&mut self, at: usize) {
        let via = Via {
            node: self.nodes[at].id,
            boot: self.nodes[at].boot,
        };
        for owner in 0..NODES {
            let node = &self.nodes[owner];
            let is_awake = node.is_alive && node.paused_until_ms <= self.now_ms;
            let Some(owned) = node.owned.as_ref().filter(|_| is_awake && owner != at) else {
                continue;
            };
            let is_awaited = owned
                .awaited
                .as_ref()
                .is_some_and(|awaited| awaited.iter().any(|one| one.node == via.node));
            let epoch = owned.epoch;
            if !is_awaited || epoch <= self.nodes[at].linked_epoch || !self.random.one_in(20) {
                continue;
            }
            // It owns nothing any more, and what an earlier owner has on its way to it is void.
            self.nodes[at].linked_epoch = epoch;
            self.nodes[at].owned = None;
            self.nodes[at].handing_out = None;
            self.adopt(owner, at);
            if let Some(owned) = &mut self.nodes[owner].owned
                && let Some(awaited) = &mut owned.awaited
            {
                owned.relays.insert(via);
                awaited.retain(|one| one.node != via.node);
                if awaited.is_empty() {
                    owned.hold_back = None;
                }
            }
        }
    }

    /// What members on a node hold goes on under an owner.
    pub(super) fn adopt(&mut self, owner: usize, holder: usize) {
        let now_ms = self.now_ms;
        let boot = self.nodes[holder].boot;
        let (rate, clock_ms) = (self.nodes[owner].rate, self.nodes[owner].clock_ms(now_ms));
        let Some(owned) = &mut self.nodes[owner].owned else {
            return;
        };
        for (seq, leases) in &self.live {
            for lease in leases {
                if (lease.node, lease.boot) == (holder, boot) && lease.deadline_ms > now_ms {
                    let left_ms = (lease.deadline_ms - now_ms) * rate.div_ceil(990);
                    owned.leased.insert(*seq, clock_ms + left_ms + STEP_MS);
                    self.adopted += 1;
                }
            }
        }
    }
}
