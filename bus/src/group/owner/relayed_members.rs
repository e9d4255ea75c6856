//! Members on other nodes, as the owner of their group sees them: which nodes they are on is in the record before anything is
//! leased to them, and what they hold since before goes on.

use super::Owner;
use super::ownership::Ownership;
use crate::error::GroupError;
use crate::group::command::Join;
use crate::group::ownership::Via;
use crate::group::state::MemberId;
use std::collections::BTreeSet;

/// How often nodes that are yet to tell what their members hold are looked at.
const LOOK_INTERVAL_MS: u64 = 250;

impl Owner {
    /// Writes down that a node has members, so that the next owner waits for what they hold.
    pub(super) async fn record_relay(&mut self, via: Via) -> Result<(), GroupError> {
        let is_new = |ownership: &mut Ownership| ownership.relays.insert(via);
        if !self.ownership.as_mut().is_some_and(is_new) {
            return Ok(());
        }
        let written = self.flush_and_wait().await;
        if written.is_err()
            && let Some(ownership) = &mut self.ownership
        {
            ownership.relays.remove(&via);
        }
        written
    }

    /// A member left. Where it was the last one of its node, the next owner need not wait for that.
    pub(super) fn forget_relay(&mut self, via: Via) {
        let mut members = self.members.iter();
        let is_left = members.any(|member| member.via.as_ref().is_some_and(|(one, _)| *one == via));
        if let Some(ownership) = &mut self.ownership
            && !is_left
        {
            ownership.relays.remove(&via);
        }
    }

    /// Goes on with what a member holds since before, and gives back what it never got of it.
    pub(super) fn adopt_leases(&mut self, join: &Join) {
        let now_ms = self.now_ms();
        let mut adopted = 0;
        for held in &join.held {
            let is_adopted = self.state.adopt(join.member, join.replaces, *held, now_ms);
            adopted += usize::from(is_adopted);
        }
        join.subscriber.credit.adopt(adopted);
        if let Some(replaced) = join.replaces {
            self.release_all(replaced);
        }
        self.return_credit();
    }

    fn release_all(&mut self, member: MemberId) {
        let held = self.state.held_leases(&BTreeSet::from([member]));
        let held: Vec<(u64, u64)> = held.iter().map(|(_, one)| (one.seq, one.number)).collect();
        self.state.release(member, &held);
    }

    /// A node has told all that its members hold.
    pub(super) fn reported(&mut self, via: Via) {
        if let Some(ownership) = &mut self.ownership
            && let Some(awaited) = &mut ownership.awaited
        {
            awaited.retain(|one| one.node != via.node);
        }
        self.end_grace();
    }

    /// Looks now and then whether nodes that are yet to tell are gone.
    pub(super) async fn look_at_awaited(&mut self, now_ms: u64) {
        let (Some(nodes), Some(ownership)) = (self.core.nodes.clone(), &mut self.ownership) else {
            return;
        };
        let is_held = ownership
            .held
            .is_some_and(|(_, until_ms)| now_ms < until_ms);
        if !is_held {
            // Time has ended what they may hold.
            ownership.awaited = None;
        }
        let awaited = ownership.awaited.clone();
        let Some(awaited) = awaited.filter(|_| now_ms >= ownership.look_ms) else {
            return;
        };
        ownership.look_ms = now_ms + LOOK_INTERVAL_MS;
        let mut gone = Vec::new();
        for via in awaited {
            if nodes.is_gone(via.node, via.boot).await {
                gone.push(via);
            }
        }
        if let Some(ownership) = &mut self.ownership
            && let Some(awaited) = &mut ownership.awaited
        {
            awaited.retain(|via| !gone.contains(via));
        }
        self.end_grace();
    }

    /// When they are looked at next, where that is so.
    pub(super) fn next_awaited_ms(&self) -> Option<u64> {
        let ownership = self.ownership.as_ref()?;
        let (_, until_ms) = ownership.held?;
        ownership.awaited.as_ref()?;
        (ownership.look_ms < until_ms).then_some(ownership.look_ms)
    }

    /// Where everybody has told, what nobody holds comes at once.
    fn end_grace(&mut self) {
        if let Some(ownership) = &mut self.ownership
            && ownership.awaited.as_ref().is_some_and(BTreeSet::is_empty)
        {
            ownership.awaited = None;
            ownership.held = None;
            self.state.lift_hold_back();
            self.state.touch();
        }
    }
}
