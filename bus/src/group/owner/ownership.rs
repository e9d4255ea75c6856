//! Owning the group on a store that several nodes share: taking it, confirming it after a lapse, claiming what is handed
//! out, letting go. On other stores there is nothing to own.

use super::{Existence, Owner, Stop};
use crate::error::{GroupError, OwnedElsewhere, StoreFailed};
use crate::group::inbox::{Message, SettleLease};
use crate::group::ownership::{
    Claim, Claims, Decision, Hold, Nodes, OwnerRecord, Via, decide, grace_ms,
};
use crate::group::record::GroupRecord;
use crate::group::settings::MAX_ACK_TIMEOUT_MS;
use crate::group::state::MIN_EXTENSION_MS;
use crate::group::subscriber::Ended;
use prombus_interface::SettleOp;
use prombus_store::Keyed;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often the owner before is looked at while it may be either dead or alive.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How often at most: until it is silent, and a few times more where the store fails in between.
const MAX_LOOKS: usize = 40;
/// How often a group is taken again that another node has just written.
const MAX_TAKES: usize = 8;
/// How long taking a group waits for this node's first beat.
const BEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a suspended owner rests after the store did not take its record.
const CONFIRM_REST: Duration = Duration::from_millis(200);
/// How many extensions wait for a longer claim.
const MAX_DEFERRED: usize = 1_024;

/// The ownership of a group.
pub(super) struct Ownership {
    /// Keeps this node beating.
    _hold: Hold,
    epoch: u64,
    /// The stretch of valid beats in which the record was last known to be this owner's; `None` before the first.
    stretch: Option<u64>,
    claims: Claims,
    /// What members of earlier owners may hold, until a moment of this node's clock.
    pub(super) held: Option<(Claim, u64)>,
    /// The longest extension that a member has asked for.
    extension_ms: u64,
    /// Extensions that are longer than what is claimed.
    deferred: Vec<SettleLease>,
    /// The record is written for the last time.
    is_released: bool,
    /// Nodes whose members are served, as the record has them before anything is leased to these.
    pub(super) relays: BTreeSet<Via>,
    /// The nodes that are still to tell what their members hold; `None` where only time ends what is held.
    pub(super) awaited: Option<BTreeSet<Via>>,
    /// When those are looked at next.
    pub(super) look_ms: u64,
}

/// A group's record that may be taken.
pub(super) struct Free {
    pub(super) stored: Keyed,
    /// The owner before.
    before: Option<Predecessor>,
}

/// The owner that a group is taken from.
struct Predecessor {
    epoch: u64,
    /// What its members, and those of owners before it, may still hold.
    held: Option<Claim>,
    /// The nodes whose members these are; `None` where that is not known.
    holders: Option<BTreeSet<Via>>,
}

impl Owner {
    /// The group's record, when this node may take it; fails where another node serves the group.
    pub(super) async fn find_free(&mut self, key: &str) -> Result<Option<Free>, GroupError> {
        let Some(nodes) = self.core.nodes.clone() else {
            let stored = self.core.store.get(key).await?;
            return Ok(stored.map(|stored| Free {
                stored,
                before: None,
            }));
        };
        for _ in 0..MAX_LOOKS {
            let Some(stored) = nodes.look(key).await? else {
                return Ok(None);
            };
            // Read after the look, so that all is in it that the owner can have seen while it was valid.
            let topic = self.core.store.topic(&self.name.topic);
            let tail_seq = topic.map_or(0, |topic| topic.tail_seq);
            let free = |stored, before| Ok(Some(Free { stored, before }));
            let owner = match GroupRecord::from_bytes(&stored.value) {
                // Positions of a topic that is gone have no owner.
                Ok(record) if self.is_of_another_topic(&record) => None,
                Ok(record) => record.owner,
                Err(_) => None,
            };
            let Some(owner) = owner else {
                return free(stored, None);
            };
            let standing = nodes.standing(&owner).await;
            let mut decision = decide(&owner, nodes.me(), standing);
            if !matches!(decision, Decision::Take { grace: false })
                && nodes.is_gone(owner.node, owner.boot).await
            {
                decision = Decision::Take { grace: false };
            }
            match decision {
                Decision::Take { grace } => {
                    let before = predecessor(&nodes, &owner, grace, tail_seq).await;
                    return free(stored, Some(before));
                }
                Decision::Leave => {
                    let node = nodes.describe(owner.node).await;
                    return Err(self.owned_elsewhere(node));
                }
                Decision::Wait => tokio::time::sleep(LOOK_INTERVAL).await,
            }
        }
        let cause = "it is unknown whether the group's owner is alive".into();
        Err(StoreFailed { cause }.into())
    }

    pub(super) fn is_of_another_topic(&self, record: &GroupRecord) -> bool {
        let current = self.core.store.incarnation(&self.name.topic);
        record.incarnation.is_some() && record.incarnation != current
    }

    fn owned_elsewhere(&self, node: String) -> GroupError {
        OwnedElsewhere {
            topic: self.name.topic.clone(),
            group: self.name.group.clone(),
            node,
        }
        .into()
    }

    /// Takes the group that was loaded: writes the record with this node as its owner. `false` where another node has
    /// written it meanwhile.
    pub(super) async fn take(&mut self, free: Free) -> Result<bool, GroupError> {
        let Some(nodes) = self.core.nodes.clone() else {
            return Ok(true);
        };
        let (epoch, held, holders) = match free.before {
            Some(before) => (before.epoch, before.held, before.holders),
            None => (0, None, None),
        };
        let claim = held.unwrap_or_default();
        let stretch = self.begin_ownership(&nodes, epoch + 1, claim).await?;
        if held.is_some() {
            // Counted from when the old owner was silent already, so from later than its last lease.
            let until_ms = self.now_ms().saturating_add(grace_ms(claim.hold_ms));
            self.state.hold_back(claim.to_seq, until_ms);
            if let Some(ownership) = &mut self.ownership {
                ownership.held = Some((claim, until_ms));
                ownership.awaited = holders;
            }
        }
        match self.flush_and_wait().await {
            Ok(()) => {
                self.confirm_stretch(stretch);
                if epoch > 0 {
                    tracing::info!(topic = %self.name.topic, group = %self.name.group, is_held = held.is_some(), "took a group over");
                }
                Ok(true)
            }
            Err(GroupError::TakenOver(_)) => {
                self.ownership = None;
                Ok(false)
            }
            Err(error) => {
                self.ownership = None;
                Err(error)
            }
        }
    }

    /// Loads and takes the group; again where another node is faster.
    pub(super) async fn load(&mut self) -> Result<(), GroupError> {
        for _ in 0..MAX_TAKES {
            self.ownership = None;
            match self.load_record().await? {
                None => return Ok(()),
                Some(free) => {
                    if self.take(free).await? {
                        return Ok(());
                    }
                }
            }
        }
        Err(self.taken_over())
    }

    /// Begins to own the group, as soon as a beat of this node is acknowledged; the stretch of beats that goes on. The
    /// record has to be written next.
    pub(super) async fn begin_ownership(
        &mut self,
        nodes: &Arc<Nodes>,
        epoch: u64,
        before: Claim,
    ) -> Result<u64, GroupError> {
        let hold = nodes.hold();
        let beat = tokio::time::timeout(BEAT_TIMEOUT, nodes.valid_stretch()).await;
        let Ok(stretch) = beat else {
            let cause = "the store did not take this node's beat in time".into();
            return Err(StoreFailed { cause }.into());
        };
        self.ownership = Some(Ownership {
            _hold: hold,
            epoch,
            stretch: None,
            claims: Claims::after(before),
            held: None,
            extension_ms: 0,
            deferred: Vec::new(),
            is_released: false,
            relays: BTreeSet::new(),
            awaited: None,
            look_ms: 0,
        });
        Ok(stretch)
    }

    /// The record was this owner's in this stretch.
    pub(super) fn confirm_stretch(&mut self, stretch: u64) {
        if let Some(ownership) = &mut self.ownership {
            ownership.stretch = Some(stretch);
        }
    }

    /// Makes sure that the group is still this node's before anything is handed out or settled. After a lapse of the
    /// node's beats this waits until the record is written once more, which fails where another node has taken it.
    pub(super) async fn keep_ownership(&mut self) -> Option<Stop> {
        if self.is_ownership_valid() {
            return None;
        }
        let nodes = self.core.nodes.clone()?;
        self.confirm_ownership(&nodes).await
    }

    /// Whether the group is this node's for certain, or needs no owner.
    pub(super) fn is_ownership_valid(&self) -> bool {
        let Some(nodes) = &self.core.nodes else {
            return true;
        };
        let is_stored = matches!(self.existence, Existence::Stored { .. });
        let confirmed = self.ownership.as_ref().and_then(|own| own.stretch);
        !is_stored || confirmed.is_some() && nodes.stretch() == confirmed
    }

    async fn confirm_ownership(&mut self, nodes: &Arc<Nodes>) -> Option<Stop> {
        let mut closing = self.core.closing();
        loop {
            let confirmed = if self.ownership.is_some() {
                let stretch = tokio::select! {
                    stretch = nodes.valid_stretch() => stretch,
                    () = closing.closed() => return Some(Stop::Closing),
                };
                self.flush_and_wait().await.map(|()| {
                    self.confirm_stretch(stretch);
                })
            } else {
                self.take_again().await
            };
            let now_ms = self.now_ms();
            match confirmed {
                Ok(()) if self.existence == Existence::Absent && !self.members.is_empty() => {
                    return Some(Stop::Abandoning(Ended::GroupRemoved));
                }
                Ok(()) => {
                    let own = self.ownership.as_ref().and_then(|own| own.stretch);
                    if own.is_none() || own == nodes.stretch() {
                        return None;
                    }
                }
                Err(GroupError::TakenOver(_)) if self.resolve_in_doubt(now_ms).await => {}
                Err(GroupError::TakenOver(_) | GroupError::OwnedElsewhere(_)) => {
                    let reason = if self.is_stale() {
                        Ended::TopicDeleted
                    } else {
                        Ended::TakenOver
                    };
                    return Some(Stop::Abandoning(reason));
                }
                Err(_) => {
                    tokio::select! {
                        () = tokio::time::sleep(CONFIRM_REST) => {}
                        () = closing.closed() => return Some(Stop::Closing),
                    }
                }
            }
        }
    }

    /// Takes a group that was released when it had nothing to do, and is wanted again.
    async fn take_again(&mut self) -> Result<(), GroupError> {
        let replaced = self.state.clone();
        self.load().await?;
        self.state.resume_leases(&replaced);
        if !self.members.is_empty() {
            self.rejoin_members();
        }
        Ok(())
    }

    /// Plans what the next write of the record claims, where no write is under way.
    pub(super) fn plan_claim(&mut self) {
        let needed_ms = self.longest_lease_ms();
        let (head, tail) = (self.state.head(), self.tail.current());
        if let Some(ownership) = &mut self.ownership
            && self.pending_write.is_none()
        {
            let hold_ms = needed_ms.max(ownership.extension_ms);
            ownership.claims.plan(head, tail, hold_ms);
        }
    }

    /// Writes the record where members wait for a larger claim, and sees that it is written soon where they are about to.
    pub(super) fn raise_claim(&mut self, now_ms: u64) {
        if self.ownership.is_none() || self.members.is_empty() {
            return;
        }
        self.plan_claim();
        let Some(ownership) = &self.ownership else {
            return;
        };
        if self.pending_write.is_some() || !ownership.claims.is_raised() {
            return;
        }
        let written = ownership.claims.written();
        let is_waited_for = self.state.head() >= written.to_seq
            || self.longest_lease_ms() > written.hold_ms
            || !ownership.deferred.is_empty();
        if self.is_clean() {
            self.state.touch();
        }
        if is_waited_for && !self.is_write_resting(now_ms) {
            self.flush();
        }
    }

    /// A write of the record is done, and what it claims with it.
    pub(super) fn claim_written(&mut self, now_ms: u64) {
        let Some(ownership) = &mut self.ownership else {
            return;
        };
        ownership.claims.confirm();
        for settle in std::mem::take(&mut ownership.deferred) {
            self.handle_message(Message::Settle(settle), now_ms);
        }
    }

    /// Up to where events may be handed out.
    pub(super) fn claimed_to(&self) -> u64 {
        let ownership = self.ownership.as_ref();
        ownership.map_or(u64::MAX, |own| own.claims.written().to_seq)
    }

    /// Whether leases of all members are covered by what is claimed.
    pub(super) fn may_lease(&self) -> bool {
        let ownership = self.ownership.as_ref();
        ownership.is_none_or(|own| self.longest_lease_ms() <= own.claims.written().hold_ms)
    }

    fn longest_lease_ms(&self) -> u64 {
        let group_ms = self.state.settings().ack_timeout_ms;
        let members = self.members.iter();
        let longest = members.map(|one| one.ack_timeout_ms.unwrap_or(group_ms));
        longest.max().unwrap_or(group_ms)
    }

    /// Keeps an extension that is longer than what is claimed until the claim is written; a settlement that need
    /// not wait is given back.
    pub(super) fn defer_extension(&mut self, settle: SettleLease) -> Option<SettleLease> {
        let SettleOp::Extend { extend_ms } = settle.op else {
            return Some(settle);
        };
        let extension_ms = extended_ms(self.extension_ms(extend_ms));
        let Some(ownership) = &mut self.ownership else {
            return Some(settle);
        };
        if extension_ms <= ownership.claims.written().hold_ms {
            return Some(settle);
        }
        ownership.extension_ms = ownership.extension_ms.max(extension_ms);
        if ownership.deferred.len() < MAX_DEFERRED {
            ownership.deferred.push(settle);
        }
        None
    }

    /// Claims an extension before it is given.
    pub(super) async fn cover_extension(&mut self, extend_ms: u64) -> Result<(), GroupError> {
        let extension_ms = extended_ms(extend_ms);
        let Some(ownership) = &mut self.ownership else {
            return Ok(());
        };
        if extension_ms <= ownership.claims.written().hold_ms {
            return Ok(());
        }
        ownership.extension_ms = ownership.extension_ms.max(extension_ms);
        self.flush_and_wait().await
    }

    /// Releases a group that is not in use, so that any node may take it at once; `false` where that failed.
    pub(super) async fn release_ownership(&mut self) -> bool {
        let Some(ownership) = &mut self.ownership else {
            return true;
        };
        ownership.is_released = true;
        match self.flush_and_wait().await {
            Ok(()) => self.ownership = None,
            // It is another node's already.
            Err(GroupError::TakenOver(_)) => self.ownership = None,
            Err(_) => {
                if let Some(ownership) = &mut self.ownership {
                    ownership.is_released = false;
                }
                // So that it is written, and then tried again.
                self.state.touch();
            }
        }
        self.ownership.is_none()
    }

    /// The last write of a bus that closes releases the group.
    pub(super) fn release_with_last_write(&mut self) {
        if let Some(ownership) = &mut self.ownership {
            ownership.is_released = true;
            self.state.touch();
        }
    }

    /// This node, where several share the store and it owns the group.
    pub(super) fn serving_node(&self) -> Option<String> {
        self.ownership.as_ref()?;
        Some(self.core.nodes.as_ref()?.describe_me())
    }

    /// This owner, as the record names it.
    pub(super) fn owner_record(&self) -> Option<OwnerRecord> {
        let ownership = self.ownership.as_ref()?;
        let me = self.core.nodes.as_ref()?.me();
        let Claim { to_seq, hold_ms } = ownership.claims.planned();
        let now_ms = self.core.monotonic_ms();
        let held = ownership.held.filter(|(_, until_ms)| now_ms < *until_ms);
        Some(OwnerRecord {
            node: me.node,
            boot: me.boot,
            epoch: ownership.epoch,
            claimed_to: to_seq,
            hold_ms,
            held: held.map(|(claim, _)| claim),
            released: ownership.is_released,
            relays: ownership.relays.iter().copied().collect(),
            awaited: held
                .and(ownership.awaited.as_ref())
                .map(|awaited| awaited.iter().copied().collect()),
        })
    }
}

/// What is to be known of the owner before. Members of nodes that are gone hold nothing, and what this node's own hold it
/// knows itself.
async fn predecessor(
    nodes: &Nodes,
    owner: &OwnerRecord,
    grace: bool,
    tail_seq: u64,
) -> Predecessor {
    let mut holders = BTreeSet::new();
    for via in owner.holders(grace) {
        if via.node != nodes.me().node && !nodes.is_gone(via.node, via.boot).await {
            holders.insert(via);
        }
    }
    // Written before nodes told who may hold something.
    let is_unknown = owner.held.is_some() && owner.awaited.is_none();
    Predecessor {
        epoch: owner.epoch,
        held: match holders.is_empty() {
            true if is_unknown => owner.held,
            true => None,
            false => owner.held(true, tail_seq),
        },
        holders: (!is_unknown).then_some(holders),
    }
}

/// How long a lease is at most after an extension.
pub(super) fn extended_ms(extend_ms: u64) -> u64 {
    extend_ms.clamp(MIN_EXTENSION_MS, MAX_ACK_TIMEOUT_MS)
}
