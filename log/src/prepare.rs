//! The next segment's file, written full of zeros ahead. A sync of bytes that take the place of others changes nothing
//! but them: the file system has no space to find, no extents to mark as written and no journal to commit, and so does
//! not wait for what others have in that journal. Only a log that syncs often has use for it; one that writes much for
//! each sync would write everything twice.

use crate::committer::Committer;
use crate::files::File;
use crate::maintainer::Maintainer;
use crate::maintenance::pieces::PacedFile;
use crate::pace::PIECE_BYTES;
use crate::segment::{data_name, unfinished};
use crate::writer::Writer;
use prombus_store::LockExt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A segment is prepared where syncs cover less than this on average,
const PREPARE_BELOW_BYTES_PER_SYNC: u64 = 64 << 10;
/// once there were so many of them in the segment that is being written,
const PREPARE_FROM_SYNCS: u64 = 16;
/// and so much was written since the log was opened: one that is hardly used takes no space for it.
const PREPARE_FROM_BYTES: u64 = 1 << 20;

/// What the writer and the thread that prepares segments share.
#[derive(Default)]
pub(crate) struct Preparation {
    state: Mutex<State>,
    wake: Condvar,
    /// A copy for the writer to look at without the lock.
    is_ready: AtomicBool,
}

#[derive(Default)]
struct State {
    stage: Stage,
    is_stopping: bool,
}

#[derive(Default)]
enum Stage {
    #[default]
    Idle,
    Wanted,
    Ready(Arc<dyn File>),
    /// Tried again for the segment after the next.
    Failed,
}

impl Preparation {
    /// Whether a file is ready to be taken.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.state().is_stopping = true;
        self.wake.notify_all();
    }

    fn want(&self) {
        let mut state = self.state();
        if matches!(state.stage, Stage::Idle) {
            state.stage = Stage::Wanted;
            self.wake.notify_all();
        }
    }

    fn take(&self) -> Option<Arc<dyn File>> {
        let mut state = self.state();
        if matches!(state.stage, Stage::Wanted) {
            return None;
        }
        self.is_ready.store(false, Ordering::Release);
        match std::mem::take(&mut state.stage) {
            Stage::Ready(file) => Some(file),
            Stage::Idle | Stage::Wanted | Stage::Failed => None,
        }
    }

    fn put(&self, prepared: io::Result<Arc<dyn File>>) {
        let mut state = self.state();
        self.is_ready.store(prepared.is_ok(), Ordering::Release);
        state.stage = prepared.map_or(Stage::Failed, Stage::Ready);
    }

    /// Waits until a file is wanted. False if the thread is to end.
    fn wait(&self) -> bool {
        let waits = |state: &mut State| !state.is_stopping && !matches!(state.stage, Stage::Wanted);
        let waited = self.wake.wait_while(self.state(), waits);
        !waited.unwrap_or_else(PoisonError::into_inner).is_stopping
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.guard()
    }
}

impl Maintainer {
    /// What the preparing thread does until the log is closed.
    pub(crate) fn run_preparing_thread(&self) {
        while self.committer.preparation.wait() {
            let prepared = self.prepare_segment();
            if prepared.is_err() {
                // It only takes space, and opening the log removes it too.
                let _ = self.files.remove(&prepared_name());
            }
            self.committer.preparation.put(prepared);
        }
    }

    /// Writes a file of zeros as long as a segment.
    fn prepare_segment(&self) -> io::Result<Arc<dyn File>> {
        let file = self.files.create(&prepared_name())?;
        let pace = |bytes| self.pace_rewriting(bytes).map(|()| true);
        let mut file = PacedFile::new(file, &pace);
        let zeros = vec![0; PIECE_BYTES];
        while file.bytes < self.committer.options.segment_bytes {
            let left = self.committer.options.segment_bytes - file.bytes;
            file.write(&zeros[..zeros.len().min(left as usize)])?;
        }
        file.finish()?;
        Ok(file.file)
    }
}

impl Committer {
    /// Asks for the next segment's file where syncs are frequent, early enough for it to be ready.
    pub(crate) fn prepare_if_worthwhile(&self, writer: &Writer) {
        let segment_bytes = self.options.segment_bytes;
        let is_time = !writer.is_prepared || writer.bytes >= segment_bytes / 2;
        let from_bytes = PREPARE_FROM_BYTES.min(segment_bytes / 2);
        if is_time
            && self.options.threads
            && self.options.preallocate_bytes > 0
            && self.background.pacer.written_bytes() >= from_bytes
            && syncs_often(writer)
        {
            self.preparation.want();
        }
    }

    /// Whether the log had better go on in the next segment though this one is not full: it is prepared, and this one
    /// is not.
    pub(crate) fn is_prepared_better(&self, writer: &Writer) -> bool {
        self.preparation.is_ready()
            && !writer.is_prepared
            && !self.background.pacer.is_throttled()
            && syncs_often(writer)
    }

    /// Gives the prepared file the name of a segment. `None` if there is no such file.
    pub(crate) fn take_prepared(&self, name: &str) -> Option<Arc<dyn File>> {
        let file = self.preparation.take()?;
        self.files.rename(&prepared_name(), name).ok()?;
        Some(file)
    }

    /// Removes the prepared file, if there is one.
    pub(crate) fn discard_prepared(&self) {
        if self.preparation.take().is_some() {
            // If that fails, opening the log removes it.
            let _ = self.files.remove(&prepared_name());
        }
    }
}

/// Whether what is written so far was synced in small groups.
fn syncs_often(writer: &Writer) -> bool {
    let written_bytes = writer.bytes - writer.start_bytes;
    writer.syncs >= PREPARE_FROM_SYNCS
        && written_bytes / writer.syncs < PREPARE_BELOW_BYTES_PER_SYNC
}

/// A name that no segment has before it is finished.
pub(crate) fn prepared_name() -> String {
    unfinished(&data_name(u64::MAX))
}
