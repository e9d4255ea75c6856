//! Steps in the model: events that are acknowledged in one step with publishing, with everything else that may happen
//! between taking a step in and knowing what came of it.

use super::*;

/// Steps that are being written.
pub(super) struct Writing {
    pub(super) steps: Vec<Vec<u64>>,
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
        for given in more.iter().filter_map(|&index| self.pick(index)) {
            if given.member == first.member {
                events.insert(given.seq, given.number);
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
            let why = self.why_no_step(member, seq)?;
            Some(NoStep { seq, why })
        });
        let begun = self.state.begin_step(member, events);
        prop_assert_eq!(begun, refused.map_or(Ok(()), Err));
        if begun.is_ok() {
            let seqs: Vec<u64> = events.iter().map(|&(seq, _)| seq).collect();
            self.model.stepping.extend(&seqs);
            self.steps.push_back(seqs);
        }
        Ok(())
    }

    fn why_no_step(&self, member: MemberId, seq: u64) -> Option<WhyNoStep> {
        let model = &self.model;
        let is_done = |seq: &u64| model.settled.contains(seq) || model.dead.contains(seq);
        let published = &self.log[seq as usize - 1];
        let is_behind = self.ordering == Ordering::Key
            && published.key.is_some()
            && (1..seq).any(|earlier| {
                self.log[earlier as usize - 1].key == published.key && !is_done(&earlier)
            });
        let holder = model.leases.get(&seq).map(|(holder, ..)| *holder);
        let is_of_another = holder.is_some_and(|holder| holder != member);
        if is_done(&seq) || model.stepping.contains(&seq) {
            return Some(WhyNoStep::AlreadySettled);
        }
        if seq > self.state.head() || is_behind || is_of_another {
            return Some(WhyNoStep::LeaseLost);
        }
        let is_dying = holder.is_none() && model.failures.get(&seq) == Some(&MAX_ATTEMPTS);
        is_dying.then_some(WhyNoStep::AlreadySettled)
    }

    /// Steps are written in one step with the record in which their events are settled.
    pub(super) fn write(&mut self, count: usize) {
        if self.writing.is_some() || self.steps.is_empty() {
            return;
        }
        let count = count.min(self.steps.len());
        let steps: Vec<Vec<u64>> = self.steps.drain(..count).collect();
        let seqs = steps.concat();
        let mut model = self.model.clone();
        for seq in &seqs {
            model.step(*seq);
        }
        self.writing = Some(Writing {
            record: self.state.to_record(&seqs).to_bytes().to_vec(),
            steps,
            model,
        });
    }

    pub(super) fn written(&mut self, succeeds: bool) -> Result<(), TestCaseError> {
        let Some(writing) = self.writing.take() else {
            return Ok(());
        };
        for seq in writing.steps.concat() {
            if succeeds {
                self.model.step(seq);
                prop_assert!(self.outputs.insert(seq), "{seq} has two outputs");
                self.state.stepped(&[seq], self.now_ms);
                continue;
            }
            self.state.not_stepped(&[seq], self.now_ms);
            self.model.stepping.remove(&seq);
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
