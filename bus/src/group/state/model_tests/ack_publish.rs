//! Ack-and-publish transactions in the model, with everything else that may happen
//! between queueing one and knowing its outcome.

use super::*;

/// Transactions that are being written.
pub(super) struct PendingWrite {
    pub(super) ack_publishes: Vec<Vec<u64>>,
    pub(super) record: Vec<u8>,
    /// What is true of the record.
    pub(super) model: Model,
}

impl World {
    pub(super) fn take(
        &mut self,
        delivery: prop::sample::Index,
        more: &[prop::sample::Index],
        by_number: bool,
    ) -> Result<(), TestCaseError> {
        let Some(first) = self.pick(delivery) else {
            return Ok(());
        };
        let mut events = BTreeMap::from([(first.seq, first.number)]);
        for delivered in more.iter().filter_map(|&index| self.pick(index)) {
            if delivered.member == first.member {
                events.insert(delivered.seq, delivered.number);
            }
        }
        let named = events
            .into_iter()
            .map(|(seq, number)| (seq, by_number.then_some(number)));
        self.begin(first.member, &named.collect::<Vec<_>>())
    }

    pub(super) fn take_any(
        &mut self,
        event: prop::sample::Index,
        member: MemberId,
    ) -> Result<(), TestCaseError> {
        if self.log.is_empty() {
            return Ok(());
        }
        let seq = event.index(self.log.len()) as u64 + 1;
        self.begin(self.members[member as usize], &[(seq, None)])
    }

    fn begin(
        &mut self,
        member: MemberId,
        events: &[(u64, Option<u64>)],
    ) -> Result<(), TestCaseError> {
        let refused = events.iter().find_map(|&(seq, _)| {
            let reason = self.conflict(member, seq)?;
            Some(AckPublishConflict { seq, reason })
        });
        let begun = self.state.begin_ack_publish(member, events);
        prop_assert_eq!(begun, refused.map_or(Ok(()), Err));
        if begun.is_ok() {
            let seqs: Vec<u64> = events.iter().map(|&(seq, _)| seq).collect();
            self.model.pinned.extend(&seqs);
            self.ack_publishes.push_back(seqs);
        }
        Ok(())
    }

    fn conflict(&self, member: MemberId, seq: u64) -> Option<ConflictReason> {
        let model = &self.model;
        let is_done = |seq: &u64| model.settled.contains(seq) || model.dead.contains(seq);
        let published = &self.log[seq as usize - 1];
        let is_blocked = self.ordering == Ordering::Key
            && published.key.is_some()
            && (1..seq).any(|earlier| {
                self.log[earlier as usize - 1].key == published.key && !is_done(&earlier)
            });
        let holder = model.leases.get(&seq).map(|(holder, ..)| *holder);
        let is_of_another = holder.is_some_and(|holder| holder != member);
        if is_done(&seq) || model.pinned.contains(&seq) {
            return Some(ConflictReason::AlreadySettled);
        }
        if seq > self.state.head() || is_blocked || is_of_another {
            return Some(ConflictReason::LeaseLost);
        }
        let is_dead_lettering = holder.is_none() && model.failures.get(&seq) == Some(&MAX_ATTEMPTS);
        is_dead_lettering.then_some(ConflictReason::AlreadySettled)
    }

    /// Transactions are written atomically with the record in which their events are settled.
    pub(super) fn write(&mut self, count: usize) {
        if self.writing.is_some() || self.ack_publishes.is_empty() {
            return;
        }
        let count = count.min(self.ack_publishes.len());
        let ack_publishes: Vec<Vec<u64>> = self.ack_publishes.drain(..count).collect();
        let seqs = ack_publishes.concat();
        let mut model = self.model.clone();
        for seq in &seqs {
            model.settle(*seq);
        }
        self.writing = Some(PendingWrite {
            record: self.state.to_record(&seqs).to_bytes().to_vec(),
            ack_publishes,
            model,
        });
    }

    pub(super) fn complete_write(&mut self, succeeds: bool) -> Result<(), TestCaseError> {
        let Some(writing) = self.writing.take() else {
            return Ok(());
        };
        for seq in writing.ack_publishes.concat() {
            if succeeds {
                self.model.settle(seq);
                prop_assert!(self.outputs.insert(seq), "{seq} has two outputs");
                self.state.complete_ack_publish(&[seq], self.now_ms);
                continue;
            }
            self.state.abort_ack_publish(&[seq], self.now_ms);
            self.model.pinned.remove(&seq);
            let holder = self.model.leases.get(&seq).map(|(holder, ..)| *holder);
            if holder.is_some_and(|holder| !self.members.contains(&holder)) {
                self.model.fail(seq);
            }
        }
        if succeeds {
            self.flushed = (writing.record, writing.model);
        }
        Ok(())
    }
}
