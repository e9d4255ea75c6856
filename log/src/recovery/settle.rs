//! Acting on what the inventory found. Nothing that is not understood is removed: it gets another name, which is noted
//! first.

use super::Opening;
use super::inventory::Inventory;
use super::state::State;
use crate::damage::kept_name;
use crate::segment::active::ActiveSegment;
use crate::segment::sealed::Sealed;
use prombus_store::{Damage, DamageKind, LostSeqs};
use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

impl Opening {
    /// Moves aside what cannot be used, and sees to it that the log has a record of its segments before anything is
    /// written that says so.
    pub(super) fn settle(&mut self, inventory: &Inventory) -> io::Result<()> {
        for aside in &inventory.aside {
            let kept = kept_name(&*self.files, &aside.name)?;
            let file = Some(kept.clone());
            let damage = Damage {
                file,
                ..aside.damage.clone()
            };
            self.damage.add(&*self.files, &damage);
            self.files.rename(&aside.name, &kept)?;
        }
        for damage in &inventory.damage {
            self.damage.add(&*self.files, damage);
        }
        for name in &inventory.leftovers {
            self.files.remove(name)?;
        }
        self.files.sync_names()?;
        let is_known = inventory.log_id.is_some() || inventory.segments.is_empty();
        if inventory.set.is_none() && is_known {
            // Numbers that are neither there nor missing were removed by a version that kept no record.
            let present: Vec<RangeInclusive<u64>> = inventory.explained();
            let to = present.iter().map(|range| *range.end()).max().unwrap_or(0);
            for removed in self.set.missing(&present, to) {
                self.set.remove(removed);
            }
            self.set.write(&*self.files)?;
        }
        Ok(())
    }

    /// Names the positions that are lost, by the segment that is to blame.
    pub(super) fn name_lost(
        &self,
        state: &State,
        sealed: &BTreeMap<u64, Arc<Sealed>>,
        active_segments: &[(ActiveSegment, u64)],
        missing: &[RangeInclusive<u64>],
    ) {
        let mut suspects = self.suspects.clone();
        suspects
            .0
            .extend(missing.iter().map(|range| *range.start()));
        let mut lost = suspects.lost(&state.topics, sealed, active_segments);
        for range in missing {
            let mut gone = Damage {
                last_segment: *range.end(),
                ..Damage::of(DamageKind::MissingSegment, *range.start())
            };
            for seqs in lost.remove(range.start()).unwrap_or_default() {
                gone.lose(seqs.topic.as_deref(), seqs.from..seqs.to + 1);
            }
            self.damage.add(&*self.files, &gone);
        }
        let is_new = |lost: &LostSeqs| {
            let topic = lost.topic.as_deref().unwrap_or_default();
            !self.damage.names(topic, lost.from) || !self.damage.names(topic, lost.to)
        };
        for (segment, seqs) in lost {
            let mut damage = Damage::of(DamageKind::LostPositions, segment);
            for seqs in seqs.into_iter().filter(is_new) {
                damage.lose(seqs.topic.as_deref(), seqs.from..seqs.to + 1);
            }
            if !damage.lost.is_empty() {
                self.damage.add(&*self.files, &damage);
            }
        }
    }

    /// Writes down which segments there are now. What is missing was noted; it is not looked for again.
    pub(super) fn record_segments(
        &mut self,
        missing: &[RangeInclusive<u64>],
        log_id: u64,
        last: u64,
    ) -> io::Result<()> {
        let before = self.set.clone();
        for range in missing {
            self.set.remove(range.clone());
        }
        self.set.log_id = log_id;
        self.set.highest = self.set.highest.max(last);
        if self.set == before {
            Ok(())
        } else {
            self.set.write(&*self.files)
        }
    }
}
