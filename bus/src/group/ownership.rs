//! Which node serves a group, where several nodes share a store. Nothing here is used on a store that one process has for
//! itself.
//!
//! ```text
//!   node/<node>            {boot, beat, …}  every 500 ms while the node owns groups, else every 10 s
//!   group/<topic>/<group>  {…, owner}       written by the owner alone, each time over the version it knows
//! ```
//! An owner hands out events until 1.5 s after it *sent* its last acknowledged beat; then it is suspended, and has to
//! write the group's record before it goes on. Others take the group over when they have seen the same beat for 2.5 s, by
//! their own monotonic clocks, between two looks that each followed a barrier. So no wall clocks are compared, and clock
//! rates may be apart by the ratio of the two times.
//!
//! A process that is stopped between checking and acting can still hand out something when it wakes. Therefore an owner
//! hands out only what it has claimed in the record before, and the next owner leaves what is unsettled below the claim
//! alone until every lease under it has run out, unless the node of the old owner is known to be gone.

mod absent;
mod claim;
mod nodes;
mod record;
#[cfg(test)]
mod simulation;
mod validity;
mod watch;

pub(crate) use claim::{Claim, Claims, grace_ms};
pub(crate) use nodes::{Hold, Nodes};
pub use nodes::{NodeInfo, NodeProbe};
pub(crate) use record::{OwnerRecord, Via};
pub(crate) use watch::{Decision, decide};

/// How often a node that owns groups shows that it is alive.
pub(crate) const BEAT_MS: u64 = 500;
/// How often a node that owns none does.
pub(crate) const IDLE_BEAT_MS: u64 = 10_000;
/// For how long after sending a beat that was acknowledged a node may act as an owner.
pub(crate) const VALID_MS: u64 = 1_500;
/// After what time without a new beat a node counts as silent.
pub(crate) const SILENT_MS: u64 = 2_500;
/// A node whose beat changed within this time is certainly no candidate for a takeover now.
pub(crate) const FRESH_MS: u64 = 1_000;
