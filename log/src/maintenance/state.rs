//! Keeping topics and keyed records apart from events: what a segment changed of them is written to a state run before
//! it is sealed, and runs are merged when enough of them have gathered.

use crate::damage::read_damage;
use crate::files::File;
use crate::maintainer::Maintainer;
use crate::state_runs::{Merging, NetChanges, remove_replaced};
use prombus_store::LockExt;
use std::io;
use std::sync::Arc;

impl Maintainer {
    /// Makes what a full segment changed beside its events durable, unless it is already. `rest` is called after each
    /// stretch of it.
    pub(super) fn store_state_changes(
        &self,
        number: u64,
        file: &Arc<dyn File>,
        rest: &dyn Fn(u64),
    ) -> io::Result<()> {
        if self.state_runs.covered_to() >= number {
            return Ok(());
        }
        let changes = NetChanges::of_segment(file, self.committer.log_id, rest)?;
        if !changes.damage.is_empty() {
            self.quarantine(number, &**file)?;
        }
        for range in &changes.damage {
            let damage = read_damage(number, &**file, range.clone())?;
            self.reader.damage.add(&*self.files, &damage);
        }
        let bytes = changes.write(
            &*self.files,
            &self.state_runs,
            number,
            self.committer.log_id,
        )?;
        self.committer.stats.written.state(bytes);
        Ok(())
    }

    /// Merges state runs as long as enough of them have gathered. Segments are sealed meanwhile, and their runs are left
    /// for the next time: on a busy log they come as fast as they are merged, and retention waits for the end of this.
    pub(super) fn merge_state_runs(&self) -> io::Result<()> {
        let merging = self.state_runs.merging.guard();
        let _one_at_a_time = merging;
        let up_to = self.state_runs.covered_to();
        while let Some(merging) = Merging::due(&self.state_runs.all(), up_to) {
            let merged = merging.write(&*self.files, &self.reader.damage)?;
            self.committer.stats.written.state(merged.bytes);
            let replaced = self.state_runs.add(merged);
            remove_replaced(&*self.files, merged.to, &replaced)?;
        }
        Ok(())
    }
}
