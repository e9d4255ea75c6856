//! Damage: bytes that are not what was written, files that are gone or belong elsewhere, and the positions that are
//! lost by it. A store never passes it over in silence: each finding is typed and has one line of text (its `Display`).

mod text;

use std::fmt;

/// The most lost ranges, and the most events, that one finding names; `more` counts the rest.
pub const MAX_NAMED: usize = 1000;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong.
    pub kind: DamageKind,
    /// The segment's number; 0 where the damage is not a segment's.
    pub segment: u64,
    /// The last one of several neighbours, usually the same.
    pub last_segment: u64,
    /// The first bad byte.
    pub from: u64,
    /// The byte behind the last bad one; equal to `from` where no bytes can be named.
    pub to: u64,
    /// Positions that are lost, or may be: those that cannot be told from positions that were never given or that
    /// compaction removed are named too.
    pub lost: Vec<LostSeqs>,
    /// Events that can be read from the bad bytes.
    pub events: Vec<DamagedEvent>,
    /// Lost ranges and events beyond [`MAX_NAMED`], which are not named.
    pub more: u64,
    /// The file that it is about, or that keeps the bytes as they were found.
    pub file: Option<String>,
    /// What more there is to say, in words.
    pub detail: Option<String>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamageKind {
    /// Bytes fail their checksum, or a record is not where it was written.
    Corrupt,
    /// A file is shorter than what is known to have been synced.
    Truncated,
    /// A segment that must be there is not.
    MissingSegment,
    /// The file holds another segment than its name says.
    MisplacedSegment,
    /// The file belongs to another log.
    ForeignFile,
    /// Another segment says to contain this one, and is not sound enough to be believed.
    UnprovenMerge,
    /// An index without its segment.
    OrphanIndex,
    /// A file that the log keeps beside its segments is missing or damaged.
    BadFile,
    /// Positions are lost by damage near them.
    LostPositions,
    /// Topics and keyed records are damaged or missing.
    BadState,
}

/// Positions of a topic, both ends included.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostSeqs {
    /// The topic, if it is known.
    pub topic: Option<String>,
    /// The first position.
    pub from: u64,
    /// The last one.
    pub to: u64,
}

/// An event that was hit by damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedEvent {
    /// Its topic, if it is known.
    pub topic: Option<String>,
    /// Its position, if it is known.
    pub seq: Option<u64>,
    /// Its id, if it is known.
    pub id: Option<String>,
}

impl DamageKind {
    /// Every kind with its words.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Corrupt, "corrupt bytes"),
        (Self::Truncated, "file cut short"),
        (Self::MissingSegment, "segment missing"),
        (Self::MisplacedSegment, "file holds another segment"),
        (Self::ForeignFile, "file of another log"),
        (Self::UnprovenMerge, "segment merged into an unsound one"),
        (Self::OrphanIndex, "index without its segment"),
        (Self::BadFile, "file missing or damaged"),
        (Self::LostPositions, "positions lost"),
        (Self::BadState, "topics and keyed records damaged"),
    ];

    /// The kind in words.
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(kind, _)| *kind == self);
        found.map_or("damaged", |(_, words)| words)
    }
}

impl Damage {
    /// A finding about a segment of which nothing more is known.
    pub fn of(kind: DamageKind, segment: u64) -> Self {
        Self {
            kind,
            segment,
            last_segment: segment,
            from: 0,
            to: 0,
            lost: Vec::new(),
            events: Vec::new(),
            more: 0,
            file: None,
            detail: None,
        }
    }

    /// Names positions of a topic as lost.
    pub fn lose(&mut self, topic: Option<&str>, seqs: std::ops::Range<u64>) {
        if seqs.is_empty() {
            return;
        }
        if self.lost.len() >= MAX_NAMED {
            self.more += 1;
            return;
        }
        self.lost.push(LostSeqs {
            topic: topic.map(str::to_owned),
            from: seqs.start,
            to: seqs.end - 1,
        });
    }

    /// Whether it says that this position of the topic is lost.
    pub fn names(&self, topic: &str, seq: u64) -> bool {
        let is_topic = |known: &Option<String>| known.as_deref().is_none_or(|known| known == topic);
        let is_lost =
            |lost: &LostSeqs| is_topic(&lost.topic) && (lost.from..=lost.to).contains(&seq);
        let is_event = |event: &DamagedEvent| is_topic(&event.topic) && event.seq == Some(seq);
        self.lost.iter().any(is_lost) || self.events.iter().any(is_event)
    }

    /// The same without topics, positions and ids.
    pub fn place(&self) -> Self {
        Self {
            lost: Vec::new(),
            events: Vec::new(),
            more: 0,
            ..self.clone()
        }
    }

    /// Whether it took, or may have taken, something of the topic.
    pub fn concerns(&self, topic: &str) -> bool {
        let is_topic = |known: &Option<String>| known.as_deref().is_none_or(|known| known == topic);
        self.lost.iter().any(|lost| is_topic(&lost.topic))
            || self.events.iter().any(|event| is_topic(&event.topic))
    }

    /// The same with what concerns one topic only.
    pub fn about(&self, topic: &str) -> Self {
        let mut damage = self.clone();
        let is_topic = |known: &Option<String>| known.as_deref().is_none_or(|known| known == topic);
        damage.lost.retain(|lost| is_topic(&lost.topic));
        damage.events.retain(|event| is_topic(&event.topic));
        damage
    }

    /// Whether two findings are about the same thing, though one may know more of it.
    pub fn is_same_place(&self, other: &Self) -> bool {
        let place = |one: &Self| (one.kind, one.segment, one.last_segment, one.from, one.to);
        // Beside the segments, the file or the detail says what it is about.
        let about = |one: &Self| (one.file.clone(), one.detail.clone());
        place(self) == place(other) && (self.segment > 0 || about(self) == about(other))
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(self, f)
    }
}

impl fmt::Display for DamagedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write_event(self, f)
    }
}

/// Whether its sentence is this one.
impl PartialEq<String> for Damage {
    fn eq(&self, sentence: &String) -> bool {
        let own = self.to_string();
        own == *sentence
    }
}
