//! The segment that is being written, and how a segment begins.

mod commit_cycle;

pub(crate) use commit_cycle::Roll;

use crate::completion::Completion;
use crate::files::File;
use crate::options::LogOptions;
use crate::record::{LAST_OF_BATCH, StateRecord};
use crate::segment::{Layout, SegmentHeader, data_name};
use crate::write_buffer::{KeyedChange, NewEvent, ViewChange};
use prombus_store::StoreFailed;
use std::io;
use std::sync::Arc;

/// The segment that is being written.
pub(crate) struct Writer {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn File>,
    pub(crate) bytes: u64,
    /// How many there were before this writer wrote any.
    pub(crate) start_bytes: u64,
    /// How often they were synced since then.
    pub(crate) syncs: u64,
    /// The file was written full of zeros before.
    pub(crate) is_prepared: bool,
    /// How many of the bytes are known to be synced.
    pub(crate) synced_bytes: u64,
    /// The end of the last group that readers or publishers saw when it was written, before any sync.
    exposed_on_write: u64,
    /// The segment's name is not known to be synced.
    is_new: bool,
    /// The length of the file: what is behind `bytes` is room for what comes.
    preallocated_to: u64,
    /// Room cannot be made, because the disk is full or the system does not know how.
    lacks_preallocation: bool,
    /// What the last [`StateRecord::Synced`] in the segment says.
    pub(crate) marked_bytes: u64,
    unsynced: Vec<Unsynced>,
    /// Why nothing may be written any more.
    failure: Option<StoreFailed>,
    /// Memory for the group after the one that is being gathered.
    spare: Vec<u8>,
}

/// A group that is written and waits for the sync.
struct Unsynced {
    completion: Arc<Completion>,
    /// Topics to delete and to trim.
    changes: Vec<ViewChange>,
    /// Keyed records that were written and deleted.
    keyed: Vec<KeyedChange>,
    /// What readers see only after the sync.
    hidden: Option<Hidden>,
}

/// Events that are written and not shown yet.
struct Hidden {
    segment: u64,
    offset: u64,
    block: Arc<Vec<u8>>,
    events: Vec<NewEvent>,
}

/// What is to be synced without holding the writer.
struct ToSync {
    file: Arc<dyn File>,
    bytes: u64,
    is_new: bool,
    /// A write or a sync failed before.
    failure: Option<StoreFailed>,
}

impl Writer {
    /// Goes on writing at the end of a segment whose bytes are all synced.
    pub(crate) fn new(number: u64, file: Arc<dyn File>, bytes: u64) -> Self {
        Self {
            number,
            file,
            bytes,
            start_bytes: bytes,
            syncs: 0,
            is_prepared: false,
            synced_bytes: bytes,
            exposed_on_write: bytes,
            is_new: false,
            preallocated_to: bytes,
            lacks_preallocation: false,
            marked_bytes: 0,
            unsynced: Vec::new(),
            failure: None,
            spare: Vec::new(),
        }
    }

    /// Goes on writing in a segment that was just made and of which nothing is synced.
    fn in_new_segment(number: u64, file: Arc<dyn File>, bytes: u64) -> Self {
        Self {
            synced_bytes: 0,
            is_new: true,
            ..Self::new(number, file, bytes)
        }
    }

    /// Nothing behind this offset was shown to readers or acknowledged.
    pub(crate) fn exposed_bytes(&self) -> u64 {
        self.exposed_on_write.max(self.synced_bytes)
    }

    /// What a sync has to cover now.
    fn to_sync(&self) -> ToSync {
        ToSync {
            file: self.file.clone(),
            bytes: self.bytes,
            is_new: self.is_new,
            failure: self.failure.clone(),
        }
    }

    /// Takes space on the disk before there is something to write to it. Without that the log is slower, not less safe.
    fn preallocate(&mut self, bytes: u64, options: &LogOptions) {
        let end = self.bytes + bytes;
        if self.lacks_preallocation || end <= self.preallocated_to || options.preallocate_bytes == 0
        {
            return;
        }
        let to = (end + options.preallocate_bytes).min(options.segment_bytes);
        if to > end {
            match self.file.preallocate(self.preallocated_to, to) {
                Ok(()) => self.preallocated_to = to,
                Err(_) => self.lacks_preallocation = true,
            }
        }
    }

    /// Makes the file end where its records end.
    pub(crate) fn trim_preallocation(&mut self) -> io::Result<()> {
        if self.preallocated_to > self.bytes || self.lacks_preallocation {
            self.file.truncate(self.bytes)?;
        }
        self.preallocated_to = self.bytes;
        Ok(())
    }

    /// Nothing may be written any more, and what waits for a sync has failed.
    pub(crate) fn fail(&mut self, failure: &StoreFailed) {
        self.failure.get_or_insert_with(|| failure.clone());
        for group in self.unsynced.drain(..) {
            group.completion.complete(Err(failure.clone()));
        }
    }
}

/// The record that every segment starts with. Topics and keyed records are in state runs and in the segments before it.
pub(crate) fn segment_start(next_topic_number: u32, log_id: u64) -> Vec<u8> {
    let mut start = Vec::new();
    let record = StateRecord::CheckpointEnd {
        next_topic_number,
        log_id,
    };
    record.write(&mut start, LAST_OF_BATCH);
    start
}

/// Makes a segment that starts with these records. Returns it with its length. Nothing of it is synced: as long as its
/// start is not whole, the one before it counts as the last.
pub(crate) fn create_segment(
    files: &dyn crate::files::Files,
    number: u64,
    log_id: u64,
    now_ms: u64,
    start: &[u8],
) -> io::Result<(u64, Arc<dyn File>, u64)> {
    let file = files.create(&data_name(number))?;
    let bytes = begin_segment(&*file, number, log_id, now_ms, start)?;
    Ok((number, file, bytes))
}

/// Writes what a segment starts with to a file that is empty or full of zeros. Returns how much that is.
fn begin_segment(
    file: &dyn File,
    number: u64,
    log_id: u64,
    now_ms: u64,
    start: &[u8],
) -> io::Result<u64> {
    let header = SegmentHeader {
        layout: Layout::Active,
        generation: 0,
        log_id,
        number,
        covers_to: number,
        created_ms: now_ms,
    };
    let mut bytes = header.encode();
    bytes.extend_from_slice(start);
    file.write_at(&bytes, 0)?;
    Ok(bytes.len() as u64)
}
