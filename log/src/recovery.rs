//! Opening a log: from the files of a folder to the state that the log goes on from.
//!
//! Sealed segments are taken at the word of their indexes; only the last segment, and any that was not sealed yet, is
//! read. An unacknowledged torn tail is cut off. Damage anywhere else is noted with what it hit, the segment is kept
//! aside as it was found, and a copy without the bad bytes takes its place.

mod reindex;
mod rescue;
mod state;
mod survey;

pub(crate) use reindex::{reindex, write_index};
pub(crate) use rescue::rescue_events;
pub(crate) use survey::Survey;

use crate::closed_mark::{CLOSED_NAME, ClosedMark};
use crate::damage::{Damage, DamageList, DamagedEvent, is_about_damage};
use crate::files::{File, Files, StrictFiles};
use crate::front::{Front, Group, KeyedRecords, Limits, Topics};
use crate::hashing::GivenMap;
use crate::options::LogOptions;
use crate::recent::Recent;
use crate::reserve::{RESERVE_NAME, Reserve, give_up, is_full};
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexError, IndexFor};
use crate::segment::sealed::Sealed;
use crate::segment::stream::{SpareEntries, StreamSegment};
use crate::segment::{
    HEADER_BYTES, HeaderError, Layout, SegmentHeader, data_name, index_name, index_number_of,
    number_of,
};
use crate::shared::Parts;
use crate::view::View;
use crate::writer::{Writer, create_segment};
use reindex::OldIndex;
use rescue::rescue_stream;
use state::State;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use survey::BORN;

/// Where a tail that was cut off is kept until the next one is.
pub(crate) const CUT_TAIL_NAME: &str = "cut-tail.bytes";

/// How many lost events are told one by one.
const MAX_LOST_NAMED: usize = 1000;
const WRITE_AGAIN_BYTES: u64 = 1 << 20;

/// Why a folder could not be opened as a log. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder holds something else.
    #[error("the folder holds files but no log: {found} is none of ours; choose an empty folder")]
    NotALog {
        /// One of the files.
        found: String,
    },
    /// A newer prombus wrote it.
    #[error(
        "the log has format {version}, this version reads up to {readable}; use a newer prombus"
    )]
    NewerFormat {
        /// The format that was found.
        version: u16,
        /// The newest one this code reads.
        readable: u16,
    },
    /// Another process has it open.
    #[error("another process has this log open")]
    InUse,
    /// An option is larger than the format allows.
    #[error("{name} may be at most {limit}")]
    OptionTooLarge {
        /// The option's name.
        name: &'static str,
        /// Its bound.
        limit: u64,
    },
    /// The disk failed.
    #[error("opening the log failed: {0}")]
    Io(#[from] io::Error),
}

/// What opening a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// All damage that is known, new and old, a sentence each.
    pub damage: Vec<String>,
    /// The unacknowledged tail that was cut off.
    pub cut_tail: Option<CutTail>,
}

/// Bytes at the end of the log that were not whole. No answer was given for what they held, unless the disk itself
/// damaged them; they are kept in `cut-tail.bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutTail {
    /// The segment.
    pub segment: u64,
    /// How many bytes were cut.
    pub bytes: u64,
    /// The events that can be told from them.
    pub events: Vec<DamagedEvent>,
}

/// A log while it is being opened.
pub(crate) struct Opening {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) options: LogOptions,
    pub(crate) cache: Arc<SectionCache>,
    pub(crate) damage: DamageList,
    pub(crate) cut_tail: Option<CutTail>,
    closed: Option<ClosedMark>,
}

/// What a segment's file says of itself before it is read.
struct Candidate {
    number: u64,
    header: Result<SegmentHeader, HeaderError>,
    sealed: Option<Arc<Sealed>>,
}

/// Where a segment in commit order stands among the others.
#[derive(Clone, Copy)]
struct StreamPlace {
    is_last: bool,
    /// The one right before it is in commit order too.
    follows_stream: bool,
    /// A crash may have come before it was whole.
    may_be_unborn: bool,
}

/// Opens a log, or makes one in an empty folder.
pub(crate) fn open(
    files: Arc<dyn Files>,
    options: LogOptions,
) -> Result<(Parts, OpenReport), OpenError> {
    match open_once(files.clone(), options.clone()) {
        // What recovery writes is little, and the reserve is there for it.
        Err(OpenError::Io(error)) if is_full(&error) && give_up(&*files) => {
            open_once(files, options)
        }
        opened => opened,
    }
}

fn open_once(files: Arc<dyn Files>, options: LogOptions) -> Result<(Parts, OpenReport), OpenError> {
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
    let files: Arc<dyn Files> = Arc::new(StrictFiles::new(files));
    // Whoever had it open until now may have changed it since that look.
    let numbers = check_folder(&*files)?;
    let mut opening = Opening {
        cache: Arc::new(SectionCache::new(options.index_cache_bytes)),
        damage: DamageList::load(&*files)?,
        closed: ClosedMark::read(&*files),
        cut_tail: None,
        files,
        options,
    };
    opening.remove_leftovers()?;
    let parts = opening.load(numbers)?;
    ClosedMark::remove(&*parts.files)?;
    let report = OpenReport {
        damage: parts.damage.all(),
        cut_tail: opening.cut_tail,
    };
    Ok((parts, report))
}

/// Looks whether the folder is a log that can be read, without changing anything; returns its segments.
fn check_folder(files: &dyn Files) -> Result<Vec<u64>, OpenError> {
    let names = files.list()?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    let foreign = names.iter().find(|name| !is_ours(name));
    if let (true, Some(found)) = (numbers.is_empty(), foreign) {
        let found = found.clone();
        return Err(OpenError::NotALog { found });
    }
    let mut sound = numbers.is_empty();
    for &number in &numbers {
        match read_header(files, number)? {
            Ok(_) => sound = true,
            Err(HeaderError::Newer { version }) => {
                return Err(OpenError::NewerFormat {
                    version,
                    readable: crate::segment::FORMAT_VERSION,
                });
            }
            Err(HeaderError::Damaged) => {
                sound |= Survey::of_file(files, number, 0)?.is_log();
            }
        }
    }
    // A single file may be a log that was never finished; anything else has to prove itself.
    if let (false, [number]) = (sound, numbers.as_slice()) {
        let mut bytes = [0; HEADER_BYTES as usize];
        let read = files.open(&data_name(*number))?.read_at(&mut bytes, 0)?;
        sound = SegmentHeader::may_be_unfinished(&bytes[..read]);
    }
    match sound {
        true => Ok(numbers),
        false => Err(OpenError::NotALog {
            found: data_name(numbers[0]),
        }),
    }
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    number_of(name).is_some()
        || index_number_of(name).is_some()
        || name == CLOSED_NAME
        || name == CUT_TAIL_NAME
        || name == RESERVE_NAME
        || is_about_damage(name)
}

fn read_header(files: &dyn Files, number: u64) -> io::Result<Result<SegmentHeader, HeaderError>> {
    let mut bytes = [0; HEADER_BYTES as usize];
    let read = files.open(&data_name(number))?.read_at(&mut bytes, 0)?;
    Ok(SegmentHeader::decode(&bytes[..read]))
}

impl Opening {
    fn remove_leftovers(&self) -> io::Result<()> {
        let names = self.files.list()?;
        for name in &names {
            let data = index_number_of(name).map(data_name);
            let is_orphan = data.is_some_and(|data| !names.contains(&data));
            let is_unfinished = name.ends_with(".new") && is_ours(name);
            if is_orphan || is_unfinished {
                self.files.remove(name)?;
            }
        }
        Ok(())
    }

    fn load(&mut self, numbers: Vec<u64>) -> io::Result<Parts> {
        let mut candidates = self.candidates(numbers)?;
        let first_stream = self.first_stream(&candidates);
        let mut streams = candidates.split_off(first_stream);
        let known = candidates.iter().chain(&streams);
        let log_id = known
            .filter_map(|candidate| candidate.header.ok())
            .map(|header| header.log_id)
            .next();
        let mut sealed = BTreeMap::new();
        for candidate in candidates {
            let segment = match candidate.sealed {
                Some(segment) => segment,
                None => self.seal_again(&candidate)?,
            };
            sealed.insert(segment.header.number, segment);
        }
        let mut state = State::after(&sealed, log_id, self.options.entropy);
        let mut loaded: Vec<(StreamSegment, u64)> = Vec::new();
        let count = streams.len();
        for (at, candidate) in streams.drain(..).enumerate() {
            let before = loaded.last().map_or(0, |(segment, _)| segment.number);
            let follows_stream = candidate.number == before + 1;
            let place = StreamPlace {
                is_last: at + 1 == count,
                follows_stream: follows_stream && before > 0,
                // The one before is sealed or removed only once the next is whole.
                may_be_unborn: follows_stream && (before > 0 || sealed.is_empty()),
            };
            loaded.extend(self.load_stream(&candidate, place, &mut state)?);
        }
        let writer = match loaded.last() {
            Some((segment, bytes)) => Writer::new(segment.number, segment.file.clone(), *bytes),
            None => {
                let last = sealed.values().next_back();
                let number =
                    last.map_or(1, |last| last.header.covers_to.max(last.header.number) + 1);
                let (number, file, bytes) = create_segment(
                    &*self.files,
                    number,
                    state.log_id,
                    self.options.clock.now_ms(),
                    &state.checkpoint(),
                )?;
                file.sync()?;
                self.files.sync_names()?;
                loaded.push((StreamSegment::new(number, file.clone()), bytes));
                Writer::new(number, file, bytes)
            }
        };
        self.compare_with_mark(&state, &loaded);
        let streams = loaded.into_iter().map(|(segment, _)| segment).collect();
        Ok(self.assemble(state, sealed, streams, writer))
    }

    /// Looks at each segment's header and index. Segments that were merged into another are removed.
    fn candidates(&self, numbers: Vec<u64>) -> io::Result<Vec<Candidate>> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for number in numbers {
            let merged =
                |before: &Candidate| before.header.is_ok_and(|header| header.covers_to >= number);
            if candidates.last().is_some_and(merged) {
                self.files.remove(&data_name(number))?;
                continue;
            }
            let header = read_header(&*self.files, number)?;
            let sealed = match header {
                Ok(header) => self.open_sealed(header)?,
                Err(_) => None,
            };
            candidates.push(Candidate {
                number,
                header,
                sealed,
            });
        }
        Ok(candidates)
    }

    /// The place of the first segment that is taken as not sealed: the last one, and those right before it that have
    /// no index and lie in commit order.
    fn first_stream(&self, candidates: &[Candidate]) -> usize {
        let is_stream = |candidate: &Candidate| match candidate.header {
            Ok(header) => candidate.sealed.is_none() && header.layout == Layout::Stream,
            // Nobody knows how it lies, but what was never sealed has no index.
            Err(_) => self.files.open(&index_name(candidate.number)).is_err(),
        };
        let Some(last) = candidates.len().checked_sub(1) else {
            return 0;
        };
        let is_sealed = |candidate: &Candidate| candidate.sealed.is_some();
        if is_sealed(&candidates[last]) {
            return candidates.len();
        }
        let before = candidates[..last].iter().rposition(|one| !is_stream(one));
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
    fn seal_again(&self, candidate: &Candidate) -> io::Result<Arc<Sealed>> {
        let survey = Survey::of_file(&*self.files, candidate.number, u64::MAX)?;
        let header = match (candidate.header, survey.damage.is_empty()) {
            (Ok(header), true) => header,
            _ => rescue_events(&*self.files, &self.damage, candidate.number, &survey)?,
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
        if let Some(old) = old {
            old.note_missing(&*self.files, &self.damage, &sealed);
        }
        Ok(sealed)
    }

    /// Reads a segment that is not sealed. `None` if it was never finished and is gone now.
    fn load_stream(
        &mut self,
        candidate: &Candidate,
        place: StreamPlace,
        state: &mut State,
    ) -> io::Result<Option<(StreamSegment, u64)>> {
        let number = candidate.number;
        let closed = self.closed.as_ref();
        let closed_bytes = closed.filter(|mark| mark.segment == number);
        let closed_bytes = closed_bytes.map(|mark| mark.segment_bytes);
        let proven = match (closed_bytes, place) {
            (_, StreamPlace { is_last: false, .. }) => u64::MAX,
            (Some(bytes), _) => bytes,
            (None, place) if place.may_be_unborn => 0,
            (None, _) => BORN,
        };
        let mut survey = Survey::of_file(&*self.files, number, proven)?;
        if !survey.is_born {
            self.files.remove(&data_name(number))?;
            self.files.sync_names()?;
            return Ok(None);
        }
        if survey.end < survey.file_bytes {
            self.cut_tail = Some(survey.cut_tail(&*self.files, number)?);
        }
        let lacks_checkpoint = place.is_last && survey.checkpoint_end.is_none();
        let missing = survey.file_bytes..closed_bytes.unwrap_or(survey.file_bytes);
        let is_cut_short = !missing.is_empty() || lacks_checkpoint;
        if is_cut_short {
            self.note_lost(number, missing, Vec::new());
        }
        if is_cut_short || !survey.damage.is_empty() || candidate.header.is_err() {
            rescue_stream(&*self.files, &self.damage, number, &survey, state)?;
            survey = Survey::of_file(&*self.files, number, u64::MAX)?;
        }
        let file = self.files.open(&data_name(number))?;
        if survey.end < file.bytes()? {
            file.truncate(survey.end)?;
        }
        // From here on everything counts as safe. What a crashed process wrote may not be, even though this sync
        // will succeed, if an earlier one failed; so it is written once more.
        write_again(&*file, survey.proven..survey.end)?;
        file.sync()?;
        let mut segment = StreamSegment::new(number, file);
        let gaps = state.replay(&mut segment, survey.end, survey.checkpoint_end.is_some())?;
        for (topic, seqs) in gaps.into_iter().filter(|_| place.follows_stream) {
            self.note_lost(number - 1, 0..0, lost_events(Some(&topic), seqs));
        }
        Ok(Some((segment, survey.end)))
    }

    /// Notes what a properly closed log has lost since.
    fn compare_with_mark(&self, state: &State, streams: &[(StreamSegment, u64)]) {
        let Some(mark) = &self.closed else {
            return;
        };
        let bytes = 0..mark.segment_bytes;
        if !streams.iter().any(|(one, _)| one.number == mark.segment) {
            self.note_lost(mark.segment, bytes, Vec::new());
        }
        let end = mark.segment_bytes..mark.segment_bytes;
        for (number, next_seq) in &mark.next_seqs {
            let topic = state.topics.get(number);
            let lost = topic.map_or(1, |topic| topic.next_seq)..*next_seq;
            if !lost.is_empty() {
                let events = lost_events(topic.map(|topic| &*topic.name), lost);
                self.note_lost(mark.segment, end.clone(), events);
            }
        }
    }

    fn note_lost(&self, segment: u64, bytes: Range<u64>, events: Vec<DamagedEvent>) {
        let damage = Damage {
            segment,
            from: bytes.start,
            to: bytes.end,
            events,
        };
        self.damage.add(&*self.files, &damage);
    }

    fn assemble(
        &mut self,
        state: State,
        sealed: BTreeMap<u64, Arc<Sealed>>,
        streams: Vec<StreamSegment>,
        writer: Writer,
    ) -> Parts {
        let mut view = View {
            topics: GivenMap::default(),
            names: BTreeMap::new(),
            streams,
            sealed: BTreeMap::new(),
            recent: Recent::new(self.options.recent_bytes),
            spare_entries: SpareEntries::default(),
            log_id: state.log_id,
        };
        let mut topics = Topics::new(state.log_id);
        for record in state.topics.into_values() {
            let tail = Arc::new(AtomicU64::new(record.next_seq - 1));
            view.add_topic(record.clone(), tail.clone());
            topics.restore(record, tail);
        }
        topics.next_number = topics.next_number.max(state.next_topic_number);
        sealed.values().for_each(|segment| view.add_sealed(segment));
        let front = Front {
            topics,
            keyed: KeyedRecords::new(state.keyed),
            own_ids: state.own_ids,
            pending: Group::default(),
            segment: writer.number,
            sync_wanted: false,
            sync_thread_sleeps: false,
            refusal: None,
            full: match Reserve::look(&*self.files, self.options.reserve_bytes) {
                Reserve::Held => None,
                Reserve::Spent(full) => Some(full),
            },
            limits: Limits {
                max_pending_bytes: self.options.max_pending_bytes,
                max_keyed_bytes: self.options.max_keyed_bytes,
            },
        };
        Parts {
            files: self.files.clone(),
            options: self.options.clone(),
            log_id: state.log_id,
            front,
            writer,
            view,
            cache: self.cache.clone(),
            damage: std::mem::take(&mut self.damage),
        }
    }
}

/// Events of which nothing but their place is known.
fn lost_events(topic: Option<&str>, seqs: Range<u64>) -> Vec<DamagedEvent> {
    let lost = seqs.take(MAX_LOST_NAMED).map(|seq| DamagedEvent {
        topic: topic.map(str::to_owned),
        seq: Some(seq),
        id: None,
    });
    lost.collect()
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
