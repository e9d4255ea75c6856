//! How a log is opened: its limits, each with a name, and what is passed in.

use crate::recovery::OpenError;
use prombus_store::{Clock, Damage, SystemClock, TOMBSTONE_MS};
use std::sync::Arc;

/// Is notified what readers can see now. Called by the thread that made it so, in order per topic; must not block.
pub trait Listener: Send + Sync + 'static {
    /// A topic's tail has moved, or is 0 again because the topic was deleted.
    fn tail_moved(&self, topic: &str, tail_seq: u64);
    /// Whether there are listeners. Asked after tails have moved: a watch that begins later sees
    /// where it ends.
    fn is_followed(&self) -> bool {
        true
    }
    /// Topics were made, changed or deleted.
    fn topics_changed(&self);
    /// Damage was found that was not known before, while opening, reading or in maintenance.
    fn damage_found(&self, _damage: &Damage) {}
    /// A write or a sync failed, so that the log takes no more batches. Called with locks of the log held.
    fn failed(&self) {}
}

/// Who decides the order of a log's commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// The log itself, in the order of calls.
    #[default]
    Primary,
    /// Another log, of which this is a copy: see [`crate::Log::append_all`]. What is written is visible and acknowledged
    /// at once; it is synced now and then, since what a crash takes is copied again. Nothing is forgotten by the log's
    /// own clock, so that all copies hold the same.
    Copy,
}

/// The bounds of the options below. A segment's offsets have 32 bits; a segment may grow over its size by what waits to
/// be written, which is at most twice `max_pending_bytes`, and starts with all keyed records.
const MAX_SEGMENT_BYTES: u64 = 1 << 30;
const MAX_PENDING_BYTES: u64 = 256 << 20;
const MAX_KEYED_BYTES: u64 = 1 << 30;

/// Limits of a log and what it gets from outside.
#[derive(Clone)]
pub struct LogOptions {
    /// A segment is sealed when it has grown to this.
    pub segment_bytes: u64,
    /// The newest records are kept in memory up to this, so that tail readers do no I/O.
    pub tail_cache_bytes: usize,
    /// Parts of sealed segments' indexes are kept in memory up to this.
    pub index_cache_bytes: usize,
    /// Filters over the client ids of sealed segments are kept in memory up to this. Looking for an id beyond it costs one
    /// or two reads of 4 KiB.
    pub id_filter_bytes: usize,
    /// So many idle files are kept open. Files that are being written, and those that are read after they were rewritten
    /// or removed, come on top.
    pub max_open_files: usize,
    /// Appends fail while more than this waits to be written.
    pub max_pending_bytes: usize,
    /// All keyed records together may take this much memory. New ones are refused beyond it; those that are there can be
    /// replaced by larger ones up to an eighth more, and by smaller ones always.
    pub max_keyed_bytes: usize,
    /// While this many full segments wait to be sealed, publishers are throttled to the speed of sealing: each costs
    /// memory for its index.
    pub max_unsealed_segments: usize,
    /// Sealing writes about this much in a second, and more where publishers do or where segments wait. 0 for no limit.
    pub seal_bytes_per_second: u64,
    /// Compaction and the freeing of space read and write at most this much in a second, and less while segments are
    /// sealed. 0 for no limit.
    pub rewrite_bytes_per_second: u64,
    /// Space is taken on the disk so far ahead of what is written: writing into it is quicker, and a sync that need not
    /// make a new length of the file durable takes about two thirds of the time. 0 to do without.
    pub preallocate_bytes: u64,
    /// So much space is held back in a file, to be used when the disk is full for everything but events. 0 to do
    /// without.
    pub reserve_bytes: u64,
    /// What was written with `os` durability is synced at least this often.
    pub os_sync_interval_ms: u64,
    /// How often retention and compaction look for work.
    pub maintain_interval_ms: u64,
    /// A tombstone is kept at least this long, so that followers see it.
    pub tombstone_ms: u64,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// The id of a new log, which sets the ids of its events apart from all others; `None` to draw one. A log that exists
    /// keeps its own, but a [`Role::Copy`] with another id than this one is not opened.
    pub log_id: Option<u64>,
    /// Whether the log decides the order of its commits itself.
    pub role: Role,
    /// Is notified what readers can see.
    pub listener: Option<Arc<dyn Listener>>,
    /// Whether the log runs its own threads. Without them nothing is written or sealed until [`crate::Log::commit_now`]
    /// and [`crate::Log::maintain`] are called, which makes every step of a test repeatable.
    pub threads: bool,
}

impl LogOptions {
    /// Refuses options with which an offset could be larger than the format holds.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        for (name, value, limit) in [
            ("segment_bytes", self.segment_bytes, MAX_SEGMENT_BYTES),
            (
                "max_pending_bytes",
                self.max_pending_bytes as u64,
                MAX_PENDING_BYTES,
            ),
            (
                "max_keyed_bytes",
                self.max_keyed_bytes as u64,
                MAX_KEYED_BYTES,
            ),
        ] {
            if value > limit {
                return Err(OpenError::OptionTooLarge { name, limit });
            }
        }
        Ok(())
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            tail_cache_bytes: 8 << 20,
            index_cache_bytes: 16 << 20,
            id_filter_bytes: 96 << 20,
            max_open_files: 256,
            max_pending_bytes: 64 << 20,
            max_keyed_bytes: 256 << 20,
            max_unsealed_segments: 3,
            seal_bytes_per_second: 32 << 20,
            rewrite_bytes_per_second: 32 << 20,
            preallocate_bytes: 8 << 20,
            reserve_bytes: 4 << 20,
            os_sync_interval_ms: 1000,
            maintain_interval_ms: 1000,
            tombstone_ms: TOMBSTONE_MS,
            clock: Arc::new(SystemClock),
            log_id: None,
            role: Role::Primary,
            listener: None,
            threads: true,
        }
    }
}
