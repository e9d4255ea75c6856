//! Opening a log: from the files of a folder to the state that the log goes on from.
//!
//! Sealed segments are taken at the word of their indexes; only the last segment, and any that was not sealed yet, is
//! read. An unacknowledged torn tail is cut off. Damage anywhere else is noted with what it hit, the segment is kept
//! aside as it was found, and a copy without the bad bytes takes its place.

mod reindex;
mod rescue;
mod state;
mod survey;

pub(crate) use reindex::reindex;
pub(crate) use rescue::rescue_events;
pub(crate) use survey::Survey;

use crate::closed_mark::{CLOSED_NAME, ClosedMark};
use crate::damage::{DamageList, is_about_damage};
use crate::files::Files;
use crate::front::{Front, Group, Limits, Topics};
use crate::options::LogOptions;
use crate::recent::Recent;
use crate::segment::cache::SectionCache;
use crate::segment::index::{Index, IndexError, IndexFor};
use crate::segment::sealed::Sealed;
use crate::segment::stream::StreamSegment;
use crate::segment::{
    HEADER_BYTES, HeaderError, Layout, SegmentHeader, data_name, index_name, number_of,
};
use crate::shared::Parts;
use crate::view::View;
use crate::writer::{Writer, create_segment};
use reindex::OldIndex;
use rescue::rescue_stream;
use state::State;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Where a tail that was cut off is kept until the next one is.
pub(crate) const CUT_TAIL_NAME: &str = "cut-tail.bytes";

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
    pub events: Vec<crate::damage::DamagedEvent>,
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

/// Opens a log, or makes one in an empty folder.
pub(crate) fn open(
    files: Arc<dyn Files>,
    options: LogOptions,
) -> Result<(Parts, OpenReport), OpenError> {
    let numbers = check_folder(&*files)?;
    files.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::InUse,
        _ => OpenError::Io(error),
    })?;
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
    // A single file that is cut short may be a log that was never finished; anything else has to prove itself.
    let unborn = numbers.len() == 1 && files.open(&data_name(numbers[0]))?.bytes()? < HEADER_BYTES;
    match sound || unborn {
        true => Ok(numbers),
        false => Err(OpenError::NotALog {
            found: data_name(numbers[0]),
        }),
    }
}

fn is_ours(name: &str) -> bool {
    number_of(name).is_some()
        || name.ends_with(".idx")
        || name.ends_with(".new")
        || name == CLOSED_NAME
        || name == CUT_TAIL_NAME
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
            let data = name.strip_suffix(".idx").map(|stem| format!("{stem}.seg"));
            let is_orphan = data.is_some_and(|data| !names.contains(&data));
            if is_orphan || name.ends_with(".new") {
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
        let mut state = State::after(sealed.values().next_back(), log_id, self.options.entropy);
        let mut loaded = Vec::new();
        let count = streams.len();
        for (at, candidate) in streams.drain(..).enumerate() {
            let is_last = at + 1 == count;
            loaded.extend(self.load_stream(&candidate, is_last, &mut state)?);
        }
        let writer = match loaded.last() {
            Some((segment, bytes)) => Writer::new(segment.number, segment.file.clone(), *bytes),
            None => {
                let number = sealed.keys().next_back().map_or(1, |last| last + 1);
                let (number, file, bytes) = create_segment(
                    &*self.files,
                    number,
                    state.log_id,
                    self.options.clock.now_ms(),
                    &state.checkpoint(),
                )?;
                loaded.push((StreamSegment::new(number, file.clone()), bytes));
                Writer::new(number, file, bytes)
            }
        };
        self.compare_with_mark(&state);
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
            Err(_) => false,
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
        is_last: bool,
        state: &mut State,
    ) -> io::Result<Option<(StreamSegment, u64)>> {
        let proven = match (&self.closed, is_last) {
            (Some(mark), true) if mark.segment == candidate.number => mark.segment_bytes,
            (_, true) => 0,
            (_, false) => u64::MAX,
        };
        let survey = Survey::of_file(&*self.files, candidate.number, proven)?;
        if is_last && !survey.is_born() {
            self.files.remove(&data_name(candidate.number))?;
            self.files.sync_names()?;
            return Ok(None);
        }
        if survey.end < survey.file_bytes {
            self.cut_tail = Some(survey.cut_tail(&*self.files, candidate.number)?);
        }
        let is_damaged = !survey.damage.is_empty() || candidate.header.is_err();
        let survey = match is_damaged {
            true => {
                rescue_stream(&*self.files, &self.damage, candidate.number, &survey, state)?;
                Survey::of_file(&*self.files, candidate.number, u64::MAX)?
            }
            false => survey,
        };
        let file = self.files.open(&data_name(candidate.number))?;
        if survey.end < survey.file_bytes {
            file.truncate(survey.end)?;
        }
        // What a crashed process wrote may never have been synced, and from here on it counts as safe.
        file.sync()?;
        let mut segment = StreamSegment::new(candidate.number, file);
        state.replay(&mut segment, survey.end)?;
        Ok(Some((segment, survey.end)))
    }

    /// Notes what a properly closed log has lost since.
    fn compare_with_mark(&self, state: &State) {
        let Some(mark) = &self.closed else {
            return;
        };
        for (number, next_seq) in &mark.next_seqs {
            let Some(topic) = state.topics.get(number) else {
                continue;
            };
            if topic.next_seq < *next_seq {
                let lost = (topic.next_seq..*next_seq).map(|seq| crate::damage::DamagedEvent {
                    topic: Some(topic.name.to_string()),
                    seq: Some(seq),
                    id: None,
                });
                let damage = crate::damage::Damage {
                    segment: mark.segment,
                    from: mark.segment_bytes,
                    to: mark.segment_bytes,
                    events: lost.collect(),
                };
                self.damage.add(&*self.files, &damage);
            }
        }
    }

    fn assemble(
        &mut self,
        state: State,
        sealed: BTreeMap<u64, Arc<Sealed>>,
        streams: Vec<StreamSegment>,
        writer: Writer,
    ) -> Parts {
        let mut view = View {
            topics: HashMap::new(),
            names: BTreeMap::new(),
            streams,
            sealed: BTreeMap::new(),
            recent: Recent::new(self.options.recent_bytes),
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
        let size_of =
            |(key, keyed): (&Arc<str>, &crate::receipt::Keyed)| key.len() + keyed.value.len();
        let front = Front {
            topics,
            keyed_bytes: state.keyed.iter().map(size_of).sum(),
            keyed: state.keyed,
            own_ids: state.own_ids,
            pending: Group::default(),
            segment: writer.number,
            sync_wanted: false,
            sync_thread_sleeps: false,
            refusal: None,
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
