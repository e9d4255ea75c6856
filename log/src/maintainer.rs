//! The background side of an open log: seals full segments, applies retention and compaction, frees space. Its methods are
//! in `maintenance/`. It holds the locks that keep two threads from doing the same work.

use crate::background::Background;
use crate::committer::Committer;
use crate::files::{Files, RemovedFiles};
use crate::reader::Reader;
use crate::segment_set::SegmentSet;
use crate::state_runs::StateRuns;
use prombus_store::LockExt;
use std::io;
use std::sync::{Arc, Mutex};

/// Does everything that no publisher and no reader waits for.
pub(crate) struct Maintainer {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) removed_files: Arc<RemovedFiles>,
    pub(crate) reader: Arc<Reader>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) background: Arc<Background>,
    pub(crate) state_runs: StateRuns,
    /// The record of segments as it is on disk. The last lock of all.
    segments: Mutex<SegmentSet>,
    /// Held while full segments are sealed, so that one thread does it at a time. Sealing touches segments in commit
    /// order, rewriting sealed ones, so that both go on at once.
    pub(crate) sealing: Mutex<()>,
    /// Held while sealed segments are rewritten or removed, so that one thread does it at a time.
    pub(crate) rewriting: Mutex<()>,
}

impl Maintainer {
    pub(crate) fn new(
        (reader, committer): (Arc<Reader>, Arc<Committer>),
        background: Arc<Background>,
        removed_files: Arc<RemovedFiles>,
        state_runs: StateRuns,
        segments: SegmentSet,
    ) -> Self {
        Self {
            files: reader.files.clone(),
            removed_files,
            reader,
            committer,
            background,
            state_runs,
            segments: Mutex::new(segments),
            sealing: Mutex::default(),
            rewriting: Mutex::default(),
        }
    }

    /// Changes the record of segments, durably. Nothing is written where it says so already.
    pub(crate) fn record_segments(&self, change: impl FnOnce(&mut SegmentSet)) -> io::Result<()> {
        let mut recorded = self.segments.guard();
        let mut changed = recorded.clone();
        change(&mut changed);
        if changed != *recorded {
            changed.write(&*self.files)?;
            *recorded = changed;
        }
        Ok(())
    }
}
