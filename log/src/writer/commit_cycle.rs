//! Group commit: one write and one fdatasync for everyone who waits.
//!
//! The thread that holds the writer writes everything pending. With `os` durability that is the publishing thread itself
//! if no other is writing. With `fsync` it is the sync thread: while one fdatasync runs, the next commit group gathers.

use super::{Hidden, ToSync, Unsynced, Writer, begin_segment, segment_start};
use crate::committer::Committer;
use crate::files::File;
use crate::options::Role;
use crate::record::{LAST_OF_BATCH, StateRecord};
use crate::segment::active::ActiveSegment;
use crate::segment::data_name;
use crate::view::TailAdvance;
use crate::write_buffer::{CommitGroup, ViewChange};
use prombus_store::StoreFailed;
use std::cmp::Reverse;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A sync is asked for when this much has been written without one, so that the one at a segment's end is short.
const MAX_UNSYNCED_BYTES: u64 = 8 << 20;
/// The sync at a segment's end, for which publishers wait, is for about this much, unless they write faster than the
/// disk.
const LAST_SYNC_BYTES: u64 = 1 << 20;
/// How often a full segment is synced before that.
const SYNCS_AHEAD: usize = 3;
/// While that goes on, publishers may still write this to a segment that is full, or an eighth of one if that is less.
const MAX_OVERSHOOT_BYTES: u64 = 8 << 20;

/// A publisher writes for others until it has written this many groups or bytes; the rest is the sync thread's.
const MAX_GROUPS_AT_ONCE: usize = 8;
const MAX_BYTES_AT_ONCE: u64 = 1 << 20;

/// Whether a writer may go on to the next segment, which takes a sync.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Roll {
    Allowed,
    LeaveToSyncThread,
}

/// How much is written in one go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// What is pending now. What comes meanwhile gathers for the next sync: where many publish, something comes all the
    /// time.
    OneGroup,
    /// Nothing is pending, or this much was written.
    Written(Allowance),
}

/// How much a thread writes before it leaves the rest to the sync thread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Allowance {
    groups: usize,
    bytes: u64,
}

impl Allowance {
    fn is_used_up(self) -> bool {
        self.groups == 0 || self.bytes == 0
    }
}

impl Committer {
    /// Writes what is pending on this thread, unless another one has the writer: that one will look for it. Where others
    /// always have more, the sync thread takes over, so that no one's publish takes as long as theirs together.
    pub(crate) fn write_if_idle(&self) {
        let mut left = Allowance {
            groups: MAX_GROUPS_AT_ONCE,
            bytes: MAX_BYTES_AT_ONCE,
        };
        loop {
            if left.is_used_up() || self.background.pacer.is_throttled() {
                return self.hand_over_writing();
            }
            let Some(mut writer) = self.writer_or_promise() else {
                return;
            };
            let until = Until::Written(left);
            left = self.write_pending(&mut writer, Roll::LeaveToSyncThread, until);
            if writer.bytes - writer.synced_bytes > MAX_UNSYNCED_BYTES {
                self.want_sync(&mut self.buffer());
            }
            drop(writer);
            if !left.is_used_up() && !self.is_write_promised() {
                return;
            }
        }
    }

    /// Writes what is pending, syncs, and lets everyone go on who waited for that.
    pub(crate) fn commit_cycle(&self) {
        let _cycle = self.cycle();
        if self.options.threads {
            self.sync_ahead();
        }
        self.write_and_sync(Roll::Allowed);
    }

    /// A cycle. The caller must hold the commit lock.
    pub(crate) fn write_and_sync(&self, roll: Roll) {
        let (to_sync, unsynced) = {
            let mut writer = self.writer();
            self.write_pending(&mut writer, roll, Until::OneGroup);
            let unsynced = std::mem::take(&mut writer.unsynced);
            if writer.bytes == writer.synced_bytes {
                drop(writer);
                self.write_what_came();
                return self.complete(unsynced);
            }
            (writer.to_sync(), unsynced)
        };
        self.write_what_came();
        match self.sync_outside(&to_sync) {
            Ok(()) => {
                self.write_what_came();
                self.complete(unsynced);
            }
            Err(failure) => {
                for group in unsynced {
                    group.completion.complete(Err(failure.clone()));
                }
            }
        }
    }

    /// Syncs a full segment while others write to it, so that little is left to sync when they have to wait for that.
    fn sync_ahead(&self) {
        for _ in 0..SYNCS_AHEAD {
            let to_sync = {
                let writer = self.writer();
                let is_full = writer.bytes >= self.options.segment_bytes;
                if !is_full || writer.bytes - writer.synced_bytes <= LAST_SYNC_BYTES {
                    return;
                }
                writer.to_sync()
            };
            self.write_what_came();
            if self.sync_outside(&to_sync).is_err() {
                return;
            }
        }
    }

    /// Syncs without holding the writer. A failure poisons the log, since the next sync might not tell of it; so none
    /// counts after that.
    fn sync_outside(&self, to_sync: &ToSync) -> Result<(), StoreFailed> {
        if let Some(failure) = &to_sync.failure {
            return Err(failure.clone());
        }
        let synced = self.sync_segment(&*to_sync.file, to_sync.is_new);
        let mut writer = self.writer();
        if let Err(error) = synced {
            return Err(self.poison(&mut writer, &format!("fsync failed: {error}")));
        }
        if Arc::ptr_eq(&writer.file, &to_sync.file) {
            writer.synced_bytes = writer.synced_bytes.max(to_sync.bytes);
            writer.syncs += 1;
            self.prepare_if_worthwhile(&writer);
            if std::mem::take(&mut writer.is_new) {
                self.reader.view_mut().active_is_durable(writer.number);
                self.background.want_sealing();
            }
        }
        Ok(())
    }

    /// Syncs a segment, and its name where that is new.
    fn sync_segment(&self, file: &dyn File, is_new: bool) -> io::Result<()> {
        self.timed_sync(file)?;
        if is_new {
            self.files.sync_names()
        } else {
            Ok(())
        }
    }

    /// Writes for those who wait for no sync and came while the sync thread had the writer.
    fn write_what_came(&self) {
        if self.is_write_promised() {
            self.write_if_idle();
        }
    }

    /// Writes what is pending, as far as it need not be left for the sync thread. Returns what may still be written.
    fn write_pending(&self, writer: &mut Writer, roll: Roll, until: Until) -> Allowance {
        let mut left = match until {
            Until::OneGroup => Allowance {
                groups: 1,
                bytes: u64::MAX,
            },
            Until::Written(left) => left,
        };
        while !left.is_used_up() {
            let mut buffer = self.buffer();
            if until == Until::OneGroup {
                buffer.sync_wanted = false;
            }
            let limit = self.options.segment_bytes;
            let bytes = writer.bytes + buffer.pending.bytes.len() as u64;
            let mut full = bytes >= limit;
            full |= roll == Roll::Allowed && self.is_prepared_better(writer);
            if full && roll == Roll::LeaveToSyncThread {
                self.want_sync(&mut buffer);
                if bytes >= limit + (limit / 8).min(MAX_OVERSHOOT_BYTES) {
                    return left;
                }
                full = false;
            }
            // A segment may have become full by those who left it at that, and then nothing needs to be pending.
            let is_overdue = full && writer.bytes > writer.start_bytes && !buffer.has_failed();
            if buffer.pending.is_empty() && !is_overdue {
                return left;
            }
            left.groups -= 1;
            left.bytes = left.bytes.saturating_sub(buffer.pending.bytes.len() as u64);
            let group = if buffer.pending.is_empty() {
                None
            } else {
                Some(buffer.take_pending(std::mem::take(&mut writer.spare)))
            };
            let next_topic_number = full.then(|| {
                buffer.segment += 1;
                buffer.topics.next_number
            });
            drop(buffer);
            let written = group.map_or(Ok(()), |group| self.write_group(writer, group));
            let written = written.and_then(|()| {
                next_topic_number.map_or(Ok(()), |number| self.start_segment(writer, number))
            });
            if let Err(error) = written {
                self.poison(writer, &format!("write failed: {error}"));
                return left;
            }
        }
        left
    }

    fn write_group(&self, writer: &mut Writer, mut group: CommitGroup) -> io::Result<()> {
        self.stats.written.appended(group.bytes.len() as u64);
        if group.batches_to_sync > 0 {
            self.lone_syncs.note(group.batches_to_sync);
        }
        if writer.synced_bytes > writer.marked_bytes && !group.bytes.is_empty() {
            let bytes = writer.synced_bytes;
            StateRecord::Synced { bytes }.write(&mut group.bytes, LAST_OF_BATCH);
            writer.marked_bytes = bytes;
        }
        let (segment, offset) = (writer.number, writer.bytes);
        let block = Arc::new(group.bytes);
        writer.preallocate(block.len() as u64, &self.options);
        if let Err(error) = writer.file.write_at(&block, offset) {
            let failure = StoreFailed {
                cause: format!("write failed: {error}").into(),
            };
            group.written.complete(Err(failure.clone()));
            group.synced.complete(Err(failure));
            return Err(error);
        }
        writer.bytes += block.len() as u64;
        self.stats.written.active(block.len() as u64);
        self.background.pacer.note_written(block.len() as u64);
        writer.preallocated_to = writer.preallocated_to.max(writer.bytes);
        // Readers lose nothing before it is certain: maintenance frees what they cannot see any more.
        let (now, after_sync): (Vec<_>, Vec<_>) = group
            .changes
            .into_iter()
            .partition(|change| matches!(change, ViewChange::Put { .. }));
        let topics_changed = !now.is_empty();
        let is_shown = group.events.iter().any(|event| !event.after_sync);
        if is_shown || topics_changed || group.acknowledged_on_write {
            writer.exposed_on_write = writer.bytes;
        }
        // A copy shows its keyed records as soon as they are written, together with the events of their run.
        let shown_keyed = match self.options.role {
            Role::Primary => Vec::new(),
            Role::Copy => std::mem::take(&mut group.keyed),
        };
        let buffer = (!shown_keyed.is_empty()).then(|| self.buffer());
        let (moved, deleted) = {
            let mut view = self.reader.view_mut();
            let deleted = view.change(now);
            writer.spare = view.tail_cache.push(segment, offset, block.clone());
            let visible = group.events.iter().filter(|event| !event.after_sync);
            (view.show(segment, offset, &block, visible), deleted)
        };
        if let Some(mut buffer) = buffer {
            buffer.keyed.show(shown_keyed);
        }
        group.written.complete(Ok(()));
        self.tell(moved, &deleted, topics_changed);
        group.events.retain(|event| event.after_sync);
        let hidden = (!group.events.is_empty()).then_some(Hidden {
            segment,
            offset,
            block,
            events: group.events,
        });
        writer.unsynced.push(Unsynced {
            completion: group.synced,
            changes: after_sync,
            keyed: group.keyed,
            hidden,
        });
        Ok(())
    }

    /// Shows synced events to the readers and completes their groups.
    fn complete(&self, synced: Vec<Unsynced>) {
        for group in synced {
            if !group.changes.is_empty() {
                let deleted = self.reader.view_mut().change(group.changes);
                self.tell(Vec::new(), &deleted, true);
            }
            // Records and events come into sight together.
            let buffer = (!group.keyed.is_empty()).then(|| self.buffer());
            let moved = match group.hidden {
                Some(hidden) => self.reader.view_mut().show(
                    hidden.segment,
                    hidden.offset,
                    &hidden.block,
                    hidden.events.iter(),
                ),
                None => Vec::new(),
            };
            if let Some(mut buffer) = buffer {
                buffer.keyed.show(group.keyed);
            }
            self.tell(moved, &[], false);
            group.completion.complete(Ok(()));
        }
    }

    fn tell(&self, moved: Vec<TailAdvance>, deleted: &[Arc<str>], topics_changed: bool) {
        let Some(listener) = &self.options.listener else {
            return;
        };
        for topic in deleted {
            listener.tail_moved(topic, 0);
        }
        if !moved.is_empty() && listener.is_followed() {
            for (topic, tail_seq) in self.named(moved) {
                listener.tail_moved(&topic, tail_seq);
            }
        }
        if topics_changed {
            listener.topics_changed();
        }
    }

    /// The names of topics that got longer and where they end now, each once.
    fn named(&self, mut moved: Vec<TailAdvance>) -> Vec<(Arc<str>, u64)> {
        moved.sort_unstable_by_key(|one| (one.topic, Reverse(one.tail_seq)));
        moved.dedup_by_key(|one| one.topic);
        let view = self.reader.view();
        let named = moved
            .into_iter()
            .filter_map(|TailAdvance { topic, tail_seq }| {
                let name = view.topics.get(&topic)?.name.clone();
                Some((name, tail_seq))
            });
        named.collect()
    }

    /// Finishes the full segment and starts the next one. The old one is synced before anything goes to the new one, so
    /// only the last segment of a log can be torn.
    fn start_segment(&self, writer: &mut Writer, next_topic_number: u32) -> io::Result<()> {
        writer.trim_preallocation()?;
        self.sync_segment(&*writer.file, writer.is_new)?;
        writer.synced_bytes = writer.bytes;
        self.complete(std::mem::take(&mut writer.unsynced));
        self.reader.view_mut().active_is_durable(writer.number);
        let mut start = segment_start(next_topic_number, self.log_id);
        self.reader
            .view()
            .segment_end(writer.number, writer.bytes, &mut start);
        let number = writer.number + 1;
        let name = data_name(number);
        let prepared = self.take_prepared(&name);
        let is_prepared = prepared.is_some();
        let file = match prepared {
            Some(file) => file,
            None => self.files.create(&name)?,
        };
        let now_ms = self.options.clock.now_ms();
        let bytes = begin_segment(&*file, number, self.log_id, now_ms, &start)?;
        self.stats.written.active(bytes);
        *writer = Writer::in_new_segment(number, file.clone(), bytes);
        if is_prepared {
            writer.is_prepared = true;
            writer.preallocated_to = bytes.max(self.options.segment_bytes);
        }
        let mut view = self.reader.view_mut();
        view.active_segments
            .push(ActiveSegment::unsynced(number, file));
        self.throttle_by_backlog(&view);
        Ok(())
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "how long a sync took is a figure for operators; nothing is decided by it"
    )]
    fn timed_sync(&self, file: &dyn File) -> io::Result<()> {
        let started = Instant::now();
        let outcome = file.sync();
        let micros = started.elapsed().as_micros() as u64;
        self.stats.syncs.fetch_add(1, Ordering::Relaxed);
        self.stats.sync_micros.fetch_add(micros, Ordering::Relaxed);
        self.stats.sync_times.record(micros);
        outcome
    }
}
