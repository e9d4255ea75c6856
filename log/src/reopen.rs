//! Opening a log anew underneath those who use it, after a write or a sync failed. It is opened with the care of a
//! start, and before that its tail is settled: what was neither acknowledged nor shown to readers is cut off, and what was
//! is written again from memory, because the page cache cannot be trusted after a failed sync.

use crate::files::Files;
use crate::log::Log;
use crate::recovery::{OpenError, OpenReport};
use crate::segment::data_name;
use prombus_store::{CommitError, StoreFailed};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Log {
    /// Opens the log anew in the folder of `failed`, which must not be able to change it any more: `files` is another
    /// way to it, and the one that `failed` has is closed to changes. May be called again if it fails.
    pub fn open_after(
        failed: &Self,
        files: Arc<dyn Files>,
    ) -> Result<(Self, OpenReport), OpenError> {
        if !failed.committer.is_tail_settled.load(Ordering::Acquire) {
            failed.settle_tail(&*files)?;
            failed
                .committer
                .is_tail_settled
                .store(true, Ordering::Release);
        }
        let (log, report) = Self::open(files, failed.committer.options.clone())?;
        // A record that is made again must not be taken for one that was deleted before the failure.
        let deleted_version = failed.committer.buffer().keyed.deleted_version();
        let mut buffer = log.committer.buffer();
        buffer.keyed.raise_deleted_version(deleted_version);
        drop(buffer);
        Ok((log, report))
    }

    /// Takes no batches any more because of `cause`, and goes on reading.
    pub fn refuse_writes(&self, cause: &str) {
        let cause = cause.into();
        let failure = CommitError::StoreFailed(StoreFailed { cause });
        self.committer.buffer().refuse(failure);
    }

    /// Whether a write or a sync failed, so that the log has to be opened anew.
    pub fn has_failed(&self) -> bool {
        self.committer.buffer().has_failed()
    }

    /// Cuts off what was written and neither shown to readers nor acknowledged, and writes what was, and is not known
    /// to be synced, once more.
    fn settle_tail(&self, files: &dyn Files) -> io::Result<()> {
        let (number, synced, exposed) = {
            let writer = self.committer.writer();
            (writer.number, writer.synced_bytes, writer.exposed_bytes())
        };
        let file = match files.open(&data_name(number)) {
            Ok(file) => file,
            // It was new, and its name was lost with the sync that failed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        // What memory does not hold any more is left to recovery, which reads it again.
        let blocks = self
            .reader
            .view()
            .tail_cache
            .blocks(number, &(synced..exposed));
        for (offset, block) in blocks {
            file.write_at(&block, offset)?;
        }
        if file.bytes()? > exposed {
            file.truncate(exposed)?;
        }
        Ok(())
    }
}
