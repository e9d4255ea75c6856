//! Opening a log: from the files of a folder to the state that the log goes on from.
//!
//! First every file is looked at (`inventory`), and what cannot be believed is moved aside (`settle`). Sealed segments
//! are then taken at the word of their indexes; only the last segment, and any that was not sealed yet, is read. An unacknowledged torn tail is cut off. Damage anywhere else is noted with what it hit, the segment is kept
//! aside as it was found, and a copy without the bad bytes takes its place.

mod event_scan;
mod folder;
mod inventory;
mod lost;
mod positions;
mod reindex;
mod report;
mod salvage;
mod segment_scan;
mod settle;
mod state;

pub(crate) use event_scan::scan_events;
pub(crate) use folder::check_log;
pub(crate) use reindex::{reindex, write_index};
pub use report::{CutTail, OpenError, OpenReport};
pub(crate) use salvage::salvage_events;
pub(crate) use segment_scan::SegmentScan;

use crate::client_ids::ClientIds;
use crate::closed_mark::ClosedMark;
use crate::committer::CommitterParts;
use crate::damage::{DamageList, read_damage};
use crate::files::{BoundedFiles, File, Files, RemovedFiles, StrictFiles};
use crate::hashing::GivenMap;
use crate::options::{LogOptions, Role};
use crate::reader::ReaderParts;
use crate::reserve::{Reserve, give_up, is_full};
use crate::segment::active::{ActiveSegment, SpareEntries};
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexError, IndexFor};
use crate::segment::sealed::Sealed;
use crate::segment::{HeaderError, Layout, SegmentHeader, data_name, index_name};
use crate::segment_set::SegmentSet;
use crate::state_runs::{LoadedRuns, StateRuns};
use crate::tail_cache::TailCache;
use crate::view::View;
use crate::write_buffer::{
    CommitGroup, Encoders, KeyedRecords, Limits, Topics, WatchedKeys, WriteBuffer,
};
use crate::writer::{Writer, create_segment};
use folder::{check_folder, read_header};
use inventory::Inventory;
use lost::Suspects;
use prombus_store::{Damage, DamageKind};
use reindex::OldIndex;
use salvage::salvage_active;
use segment_scan::CHECKPOINT_BYTES;
use state::{Replayed, State};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Where a tail that was cut off is kept until the next one is.
pub(crate) const CUT_TAIL_NAME: &str = "cut-tail.bytes";

const WRITE_AGAIN_BYTES: u64 = 1 << 20;

/// A log while it is being opened.
pub(crate) struct Opening {
    pub(crate) files: Arc<dyn Files>,
    removed_files: Arc<RemovedFiles>,
    pub(crate) options: LogOptions,
    pub(crate) cache: Arc<SectionCache>,
    pub(crate) damage: DamageList,
    pub(crate) cut_tail: Option<CutTail>,
    closed: Option<ClosedMark>,
    set: SegmentSet,
    /// How many findings earlier starts have left.
    known_damage: usize,
    suspects: Suspects,
    /// Bad bytes of the last segment behind which nothing tells how far topics went, and the topics of which something
    /// does.
    unknown_bytes: u64,
    known_topics: Vec<u32>,
    /// The id of a log of which nothing is there.
    new_log_id: u64,
}

/// What a segment's file says of itself before it is read.
struct Candidate {
    number: u64,
    header: Result<SegmentHeader, HeaderError>,
    sealed: Option<Arc<Sealed>>,
}

/// The place of a segment in commit order.
#[derive(Clone, Copy)]
struct ActivePlace {
    is_last: bool,
    /// The one right before it is in commit order too.
    follows_active: bool,
    /// A crash may have come before it was whole.
    may_lack_checkpoint: bool,
    /// The length of the one right before it, if that is in commit order and was never written anew.
    previous_bytes: Option<u64>,
}

/// A log as recovery has put it together: what each of its owners begins with.
pub(crate) struct Recovered {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) removed_files: Arc<RemovedFiles>,
    pub(crate) reader: ReaderParts,
    pub(crate) committer: CommitterParts,
    pub(crate) state_runs: StateRuns,
    pub(crate) segments: SegmentSet,
}

/// Opens a log, or makes one in an empty folder.
pub(crate) fn open(
    files: Arc<dyn Files>,
    options: LogOptions,
) -> Result<(Recovered, OpenReport), OpenError> {
    match open_once(files.clone(), options.clone()) {
        // What recovery writes is little, and the reserve is there for it.
        Err(OpenError::Io(error)) if is_full(&error) && give_up(&*files) => {
            open_once(files, options)
        }
        opened => opened,
    }
}

fn open_once(
    files: Arc<dyn Files>,
    options: LogOptions,
) -> Result<(Recovered, OpenReport), OpenError> {
    options.check()?;
    match check_folder(&*files) {
        // A file that vanished under the look shows that someone has the log open; the lock will tell.
        Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
        looked => drop(looked?),
    }
    files.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::InUse,
        _ => OpenError::Io(error),
    })?;
    let files = Arc::new(StrictFiles::new(files));
    let removed_files = Arc::new(RemovedFiles::default());
    let files = BoundedFiles::new(files, options.max_open_files, removed_files.clone());
    let files: Arc<dyn Files> = Arc::new(files);
    // The process that had it open until now may have changed it since that look.
    check_folder(&*files)?;
    let inventory = Inventory::take(&*files)?;
    if let (Role::Copy, Some(expected), Some(found)) =
        (options.role, options.log_id, inventory.log_id)
        && found != expected
    {
        return Err(OpenError::OtherLog { found, expected });
    }
    let new_log_id = options
        .log_id
        .unwrap_or_else(|| RandomState::new().hash_one(options.clock.now_ms()));
    let log_id = inventory.log_id.unwrap_or(new_log_id);
    let damage = DamageList::load(&*files, options.listener.clone())?;
    let mut opening = Opening {
        cache: Arc::new(SectionCache::new(options.index_cache_bytes)),
        known_damage: damage.count() as usize,
        damage,
        closed: inventory.closed.clone(),
        set: inventory.set.clone().unwrap_or(SegmentSet::new(log_id)),
        suspects: Suspects::default(),
        unknown_bytes: 0,
        known_topics: Vec::new(),
        new_log_id,
        cut_tail: None,
        files,
        removed_files,
        options,
    };
    opening.settle(&inventory)?;
    let recovered = opening.load(inventory)?;
    ClosedMark::remove(&*recovered.files)?;
    let report = OpenReport {
        damage: recovered.reader.damage.all(),
        cut_tail: opening.cut_tail,
    };
    Ok((recovered, report))
}

impl Opening {
    fn load(&mut self, mut inventory: Inventory) -> io::Result<Recovered> {
        let mut candidates = self.candidates(&mut inventory)?;
        let first_active = self.first_active(&candidates);
        let mut active_segments = candidates.split_off(first_active);
        let mut sealed = BTreeMap::new();
        for candidate in candidates {
            let segment = match candidate.sealed {
                Some(segment) => segment,
                None => self.seal_again(&candidate)?,
            };
            sealed.insert(segment.header.number, segment);
        }
        let (mut state, state_runs) = State::load(
            &*self.files,
            &self.damage,
            &sealed,
            inventory.log_id,
            self.new_log_id,
        )?;
        let mut loaded: Vec<(ActiveSegment, u64)> = Vec::new();
        let count = active_segments.len();
        for (at, candidate) in active_segments.drain(..).enumerate() {
            let before = loaded.last().map_or(0, |(segment, _)| segment.number);
            let follows_active = candidate.number == before + 1;
            let place = ActivePlace {
                is_last: at + 1 == count,
                follows_active: follows_active && before > 0,
                // The one before is sealed or removed only once the next is whole.
                may_lack_checkpoint: follows_active
                    && (before > 0 || sealed.is_empty())
                    && self.set.highest < candidate.number,
                previous_bytes: match loaded.last() {
                    Some((previous, bytes)) if self.is_as_written(previous.number)? => Some(*bytes),
                    _ => None,
                },
            };
            loaded.extend(self.load_active(&candidate, place, &mut state)?);
        }
        if let Some(segments) = state.lacks_runs.take() {
            LoadedRuns::note_missing(&*self.files, &self.damage, segments);
        }
        let raised = self.raise_positions(&mut state, &inventory);
        // The numbers of segments that are missing are given up, and so not used again.
        let marked = self.closed.as_ref().map_or(0, |mark| mark.segment);
        let highest = self.set.highest.max(marked);
        let last = loaded.last().map(|(segment, _)| segment.number);
        if last.is_none_or(|last| last < highest) {
            let number = last.unwrap_or(state.covered_to).max(highest) + 1;
            loaded.push(self.new_segment(&state, number)?);
        }
        let writer = match loaded.last_mut() {
            Some((segment, bytes)) => {
                *bytes = positions::append(&*segment.file, *bytes, &raised)?;
                Writer::new(segment.number, segment.file.clone(), *bytes)
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        self.name_lost(&state, &sealed, &loaded, &inventory.missing);
        self.record_segments(&inventory.missing, state.log_id, writer.number)?;
        let active_segments = loaded.into_iter().map(|(segment, _)| segment).collect();
        self.assemble(state, state_runs, sealed, active_segments, writer)
    }

    /// Whether a segment was never written anew.
    fn is_as_written(&self, number: u64) -> io::Result<bool> {
        let header = read_header(&*self.files, number)?;
        Ok(header.is_ok_and(|header| header.generation == 0))
    }

    /// Makes the segment to go on in where none is left to write to.
    fn new_segment(&self, state: &State, number: u64) -> io::Result<(ActiveSegment, u64)> {
        let (number, file, bytes) = create_segment(
            &*self.files,
            number,
            state.log_id,
            self.options.clock.now_ms(),
            &state.segment_start(),
        )?;
        file.sync()?;
        self.files.sync_names()?;
        Ok((ActiveSegment::new(number, file), bytes))
    }

    /// Looks at each segment's index.
    fn candidates(&self, inventory: &mut Inventory) -> io::Result<Vec<Candidate>> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for segment in inventory.segments.drain(..) {
            let sealed = match segment.header {
                Ok(header) => self.open_sealed(header)?,
                Err(_) => None,
            };
            candidates.push(Candidate {
                number: segment.number,
                header: segment.header,
                sealed,
            });
        }
        Ok(candidates)
    }

    /// The place of the first segment that is taken as not sealed: the last one, and those right before it that have
    /// no index and are in commit order.
    fn first_active(&self, candidates: &[Candidate]) -> usize {
        let is_active = |candidate: &Candidate| match candidate.header {
            Ok(header) => candidate.sealed.is_none() && header.layout == Layout::Active,
            // Its layout is unknown, but what was never sealed has no index.
            Err(_) => self.files.open(&index_name(candidate.number)).is_err(),
        };
        let Some(last) = candidates.len().checked_sub(1) else {
            return 0;
        };
        let is_sealed = |candidate: &Candidate| candidate.sealed.is_some();
        if is_sealed(&candidates[last]) {
            return candidates.len();
        }
        let before = candidates[..last].iter().rposition(|one| !is_active(one));
        before.map_or(0, |at| at + 1)
    }

    /// A segment whose index is sound, `None` otherwise.
    fn open_sealed(&self, header: SegmentHeader) -> io::Result<Option<Arc<Sealed>>> {
        let file = self.files.open(&data_name(header.number))?;
        let Ok(index_file) = self.files.open(&index_name(header.number)) else {
            return Ok(None);
        };
        let data_bytes = file.bytes()?;
        let owner = IndexFor {
            number: header.number,
            generation: header.generation,
            data_bytes,
        };
        let opened = Index::open(index_file, owner, self.cache.clone())
            .and_then(|index| Sealed::new(header, file, data_bytes, index));
        match opened {
            Ok(sealed) => Ok(Some(Arc::new(sealed))),
            Err(IndexError::Damaged) => Ok(None),
            Err(IndexError::Io(error)) => Err(error),
        }
    }

    /// A segment that was sealed and whose index is lost, or whose data is not what the index was made for.
    fn seal_again(&mut self, candidate: &Candidate) -> io::Result<Arc<Sealed>> {
        let number = candidate.number;
        let known = self.damage.count();
        let scan = SegmentScan::of_file(&*self.files, number, u64::MAX)?;
        let header = match (candidate.header, scan.damage.is_empty()) {
            (Ok(header), true) => header,
            _ => {
                let log_id = self.set.log_id;
                salvage_events(&*self.files, &self.damage, number, &scan, log_id)?
            }
        };
        // After a crash in the middle of a rewrite the index is the one of the older data, of which some was let go.
        let is_of_this = |old: &OldIndex| match candidate.header {
            Ok(found) => found.generation == old.generation,
            Err(_) => true,
        };
        let old = OldIndex::read(&*self.files, &self.cache, candidate.number).filter(is_of_this);
        let checkpoint = old.as_ref().map(|old| old.checkpoint.clone());
        let checkpoint = checkpoint.unwrap_or_default();
        let sealed = reindex(&*self.files, &self.cache, header, &self.damage, checkpoint)?;
        let lacks = |old: OldIndex| old.note_missing(&*self.files, &self.damage, &sealed);
        if old.is_some_and(lacks) || self.damage.count() > known {
            self.suspects.0.insert(number);
        }
        Ok(sealed)
    }

    /// Reads a segment that is not sealed. `None` if it was never finished and is gone now.
    fn load_active(
        &mut self,
        candidate: &Candidate,
        place: ActivePlace,
        state: &mut State,
    ) -> io::Result<Option<(ActiveSegment, u64)>> {
        let number = candidate.number;
        let closed = self.closed.as_ref();
        let closed_bytes = closed.filter(|mark| mark.segment == number);
        let closed_bytes = closed_bytes.map(|mark| mark.segment_bytes);
        let proven = match (closed_bytes, place) {
            (_, ActivePlace { is_last: false, .. }) => u64::MAX,
            (Some(bytes), _) => bytes,
            (None, place) if place.may_lack_checkpoint => 0,
            (None, _) => CHECKPOINT_BYTES,
        };
        let mut scan = SegmentScan::of_file(&*self.files, number, proven)?;
        if !scan.has_checkpoint {
            self.cut_without_checkpoint(number, scan.file_bytes)?;
            return Ok(None);
        }
        if scan.end < scan.file_bytes {
            self.cut_tail = Some(scan.cut_tail(&*self.files, number)?);
        }
        let lacks_checkpoint = place.is_last && scan.checkpoint_end.is_none();
        let missing = scan.file_bytes..closed_bytes.unwrap_or(scan.file_bytes);
        let is_cut_short = !missing.is_empty() || lacks_checkpoint;
        if is_cut_short {
            let cut_short = Damage {
                from: missing.start,
                to: missing.end,
                ..Damage::of(DamageKind::Truncated, number)
            };
            self.damage.add(&*self.files, &cut_short);
        }
        if is_cut_short || !scan.damage.is_empty() || candidate.header.is_err() {
            self.suspects.0.insert(number);
            let scanned = salvage_active(&*self.files, &self.damage, number, &scan, state)?;
            if place.is_last && closed_bytes.is_none() {
                let stretches = scan.damage.iter();
                self.unknown_bytes = stretches.map(|range| range.end - range.start).sum();
                self.known_topics = scanned.go_on;
            }
            scan = SegmentScan::of_file(&*self.files, number, u64::MAX)?;
        }
        let file = self.files.open(&data_name(number))?;
        if scan.end < file.bytes()? {
            file.truncate(scan.end)?;
        }
        // From here on everything counts as safe. What a crashed process wrote may not be, even though this sync
        // will succeed, if an earlier one failed; so it is written once more.
        write_again(&*file, scan.proven..scan.end)?;
        file.sync()?;
        let mut segment = ActiveSegment::new(number, file);
        let replayed = state.replay(&mut segment, scan.end, scan.checkpoint_end.is_some())?;
        for range in &replayed.misplaced {
            self.suspects.0.insert(number);
            let misplaced = read_damage(number, &*segment.file, range.clone())?;
            self.damage.add(&*self.files, &misplaced);
        }
        if place.follows_active {
            self.note_lost_before(number, replayed, place.previous_bytes);
        }
        Ok(Some((segment, scan.end)))
    }

    /// Notes what a segment says to have been in the one before it and was not found there. `found_bytes` is how long
    /// that one is, unless it was written anew. Positions of topics that are known are named with all others.
    fn note_lost_before(&mut self, number: u64, replayed: Replayed, found_bytes: Option<u64>) {
        let lost_bytes = found_bytes.zip(replayed.previous_bytes);
        let lost_bytes = lost_bytes.map_or(0..0, |(found, written)| found..written);
        if lost_bytes.is_empty() && replayed.gaps.is_empty() {
            return;
        }
        self.suspects.0.insert(number - 1);
        let mut damage = Damage::of(DamageKind::Truncated, number - 1);
        (damage.from, damage.to) = (lost_bytes.start, lost_bytes.end.max(lost_bytes.start));
        for (topic, seqs) in replayed.gaps {
            damage.lose(topic.as_deref(), seqs);
        }
        self.damage.add(&*self.files, &damage);
    }

    /// Puts a segment aside that a crash left before it was whole, so that nothing in it was acknowledged.
    /// What is behind `bytes` are the zeros of a file that was written ahead.
    fn cut_without_checkpoint(&mut self, number: u64, bytes: u64) -> io::Result<()> {
        let file = self.files.open(&data_name(number))?;
        file.truncate(bytes)?;
        let events = read_damage(number, &*file, 0..bytes)?.events;
        if !events.is_empty() {
            self.cut_tail = Some(CutTail {
                segment: number,
                bytes,
                events,
            });
        }
        self.files.rename(&data_name(number), CUT_TAIL_NAME)?;
        self.files.sync_names()
    }

    fn assemble(
        &mut self,
        state: State,
        state_runs: StateRuns,
        sealed: BTreeMap<u64, Arc<Sealed>>,
        active_segments: Vec<ActiveSegment>,
        writer: Writer,
    ) -> io::Result<Recovered> {
        let mut view = View {
            topics: GivenMap::default(),
            names: BTreeMap::new(),
            active_segments,
            sealed: BTreeMap::new(),
            tail_cache: TailCache::new(self.options.tail_cache_bytes),
            spare_entries: SpareEntries::default(),
            log_id: state.log_id,
        };
        let mut topics = Topics::new();
        for mut record in state.topics.into_values() {
            record.options = topics.share_options(&record.options);
            let tail = Arc::new(AtomicU64::new(record.next_seq - 1));
            view.add_topic(record.clone(), tail.clone());
            topics.restore(record, tail);
        }
        topics.next_number = topics.next_number.max(state.next_topic_number);
        for segment in sealed.values() {
            let runs = segment.index.runs().map_err(|error| match error {
                IndexError::Io(error) => error,
                IndexError::Damaged => {
                    io::Error::other("an index changed while the log was opened")
                }
            })?;
            view.add_sealed(segment, &runs);
        }
        let filter_bytes = self.options.id_filter_bytes;
        let client_ids = ClientIds::open(&*self.files, state.log_id, &sealed, filter_bytes);
        let buffer = WriteBuffer {
            watched_keys: WatchedKeys::default(),
            topics,
            encoders: Encoders::new(state.log_id),
            keyed: KeyedRecords::new(state.keyed),
            unsealed_ids: state.unsealed_ids,
            pending: CommitGroup::default(),
            segment: writer.number,
            sync_wanted: false,
            write_wanted: false,
            sync_thread_sleeps: false,
            refusal: None,
            full: match Reserve::look(&*self.files, self.options.reserve_bytes) {
                Reserve::Held => None,
                Reserve::Spent(full) => Some(full),
            },
            limits: Limits {
                max_pending_bytes: self.options.max_pending_bytes,
                // What a copy takes was accepted by its log; a limit of its own would make it another one.
                max_keyed_bytes: match self.options.role {
                    Role::Primary => self.options.max_keyed_bytes,
                    Role::Copy => usize::MAX,
                },
            },
            role: self.options.role,
        };
        Ok(Recovered {
            files: self.files.clone(),
            removed_files: self.removed_files.clone(),
            reader: ReaderParts {
                view,
                cache: self.cache.clone(),
                client_ids,
                damage: std::mem::take(&mut self.damage),
            },
            committer: CommitterParts {
                options: self.options.clone(),
                log_id: state.log_id,
                buffer,
                writer,
            },
            state_runs,
            segments: self.set.clone(),
        })
    }
}

/// Writes bytes over themselves, so that the next sync cannot pass them over.
fn write_again(file: &dyn File, range: Range<u64>) -> io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let mut bytes = vec![0; (range.end - at).min(WRITE_AGAIN_BYTES) as usize];
        let read = file.read_at(&mut bytes, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.write_at(&bytes[..read], at)?;
        at += read as u64;
    }
    Ok(())
}
