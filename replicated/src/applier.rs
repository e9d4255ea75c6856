//! Applies the messages of the shared log to a node's copy, one after the other. Everything that is decided here is
//! decided from the messages and from what was applied before, so that every node decides the same.

use crate::Entry;
use crate::boots::{Boots, Counted};
use crate::copy::{LocalCopy, Outcomes};
use crate::digest::Digest;
use crate::marks::Marks;
use crate::message::{DecodeError, Head, Kind, Message, Progress, RULES};
use crate::trims;
use prombus_store::{Batch, Change, Expect, ReadError, StoreFailed};
use std::sync::Arc;

/// Keys of records that the replicated store keeps for itself begin so. Users do not see them.
pub(crate) const HIDDEN: &str = "\0";
const POSITION_KEY: &str = "\0shared-log/position";
const BOOT_PREFIX: &str = "\0shared-log/boot/";

/// A copy and how far it is.
pub(crate) struct Applier {
    copy: Arc<dyn LocalCopy>,
    /// The last position that was applied.
    position: u64,
    /// The version of the last keyed record that was written.
    last_version: u64,
    /// The digest at `position`.
    digest: u64,
    boots: Boots,
    digests: Digest,
    /// Messages that counted for nothing since the start.
    void: u64,
    marks: Marks,
    /// Who sent the message that was applied last, and how far it was.
    heard: Option<(u64, Progress)>,
}

/// What a message came to.
#[derive(Debug)]
pub(crate) enum Applied {
    /// It was applied before.
    Old,
    /// It has no effect.
    Void,
    /// It belongs to a commit that is not complete.
    Part,
    /// It was applied: what came of each batch.
    Whole(Outcomes),
}

/// Why a node cannot go on applying.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error(
        "message {position} of the shared log is of a newer version: {error}; upgrade this node"
    )]
    Newer { position: u64, error: DecodeError },
    #[error("message {position} came where {expected} was expected")]
    OutOfOrder { position: u64, expected: u64 },
    #[error("the node's copy failed: {0}")]
    Copy(#[from] StoreFailed),
}

impl Applier {
    /// Goes on where the copy is.
    pub(crate) async fn open(copy: Arc<dyn LocalCopy>) -> Result<Self, ReadError> {
        let store = copy.store().clone();
        let mut applier = Self {
            copy,
            position: 0,
            last_version: 0,
            digest: 0,
            boots: Boots::default(),
            digests: Digest::default(),
            void: 0,
            marks: Marks::default(),
            heard: None,
        };
        let broken = |key: &str| ReadError::Failed {
            cause: format!("record {key:?} of the copy cannot be read").into(),
        };
        if let Some(record) = store.get(POSITION_KEY).await? {
            let value = record.value.split_first_chunk();
            let (position, marks) = value.ok_or_else(|| broken(POSITION_KEY))?;
            let marks = marks.try_into().map_err(|_| broken(POSITION_KEY))?;
            applier.position = u64::from_le_bytes(*position);
            applier.marks = Marks::decode(marks);
            applier.last_version = record.version;
        }
        for (key, record) in store.list(BOOT_PREFIX).await? {
            let boot = u64::from_str_radix(&key[BOOT_PREFIX.len()..], 16);
            let boot = boot.map_err(|_| broken(&key))?;
            let loaded = applier.boots.load(boot, &record.value);
            loaded.ok_or_else(|| broken(&key))?;
        }
        for info in store.topics() {
            applier.digests.topic(&info.name, Some(&info));
        }
        applier.note_digest();
        Ok(applier)
    }

    /// How far the copy is.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            position: self.position,
            digest: self.digest,
        }
    }

    /// The position behind which the log has to be followed. Parts of incomplete commits are read again.
    pub(crate) fn follow_after(&self) -> u64 {
        let first_part = self.boots.first_part().unwrap_or(u64::MAX);
        self.position.min(first_part - 1)
    }

    /// The number of the last message of a boot that counted.
    pub(crate) fn last_number(&self, boot: u64) -> u64 {
        self.boots.last_number(boot)
    }

    /// How many parts of a boot's incomplete commit were applied.
    pub(crate) fn parts_of(&self, boot: u64) -> usize {
        self.boots.parts_of(boot)
    }

    /// What the log says about snapshots.
    pub(crate) fn marks(&self) -> Marks {
        self.marks
    }

    /// Who sent the message that was applied last, and how far it was then.
    pub(crate) fn take_heard(&mut self) -> Option<(u64, Progress)> {
        self.heard.take()
    }

    /// Messages without effect since the start.
    pub(crate) fn void(&self) -> u64 {
        self.void
    }

    /// Whether other nodes have something else.
    pub(crate) fn is_outvoted(&self) -> bool {
        self.digests.is_outvoted()
    }

    /// Applies a message. Where it is the last one of a commit of this node, `own` has its batches, so that they need
    /// not be decoded.
    pub(crate) async fn apply(
        &mut self,
        entry: &Entry,
        own: Option<Vec<Batch>>,
    ) -> Result<Applied, ApplyError> {
        let position = entry.position;
        let expected = self.position + 1;
        if position > expected {
            return Err(ApplyError::OutOfOrder { position, expected });
        }
        if position < expected && self.boots.first_part().is_none() {
            return Ok(Applied::Old);
        }
        if position == expected {
            self.marks.bytes += entry.message.len() as u64;
        }
        let message = match Message::decode(&entry.message) {
            Ok(message) => message,
            Err(error @ (DecodeError::NewerFormat { .. } | DecodeError::NewerRules { .. })) => {
                return Err(ApplyError::Newer { position, error });
            }
            Err(error) => {
                tracing::warn!(position, %error, "a message of the shared log is void");
                return Ok(self.skip(position, Applied::Void));
            }
        };
        if position < expected {
            self.boots.fetch_part(position, &message);
            return Ok(Applied::Old);
        }
        self.heard = Some((message.head.boot, message.head.progress));
        self.compare(&message);
        let body = match self.boots.count(position, &message) {
            Counted::Void => return Ok(self.skip(position, Applied::Void)),
            Counted::Part => return Ok(self.skip(position, Applied::Part)),
            Counted::Whole(body) => body,
        };
        match message.head.kind {
            Kind::Heartbeat => return Ok(self.skip(position, Applied::Whole(Vec::new()))),
            Kind::Maintenance => self.copy.compact(message.head.now_ms).await?,
            Kind::BeginSnapshot | Kind::Snapshot => {
                if self.marks.take(position, &message.head, &body) {
                    // Whoever starts from this snapshot does not have the parts before it.
                    self.boots.drop_parts();
                }
            }
            Kind::Batches => {}
        }
        let batches = match (message.head.kind, own) {
            (Kind::Batches, Some(batches)) => batches,
            (Kind::Batches, None) => decode_batches(&body).unwrap_or_default(),
            (Kind::Maintenance, _) => vec![self.trims(&message.head, &body).await?],
            _ => Vec::new(),
        };
        let outcomes = self.commit(position, batches, message.head.now_ms).await?;
        Ok(Applied::Whole(outcomes))
    }

    /// What maintenance lets go. Older messages left that to each node.
    async fn trims(&self, head: &Head, body: &[u8]) -> Result<Batch, ApplyError> {
        let trims = if head.rules >= RULES {
            trims::decode(body).unwrap_or_default()
        } else {
            self.copy.due_trims(head.now_ms).await?
        };
        Ok(trims::batch(&trims, &**self.copy.store()))
    }

    /// Commits batches together with the position.
    async fn commit(
        &mut self,
        position: u64,
        mut batches: Vec<Batch>,
        now_ms: u64,
    ) -> Result<Outcomes, ApplyError> {
        let topics = touched_topics(&batches);
        batches.push(self.own_records(position));
        let mut outcomes = self.copy.apply(batches, now_ms, position).await?;
        let written = match outcomes.pop() {
            Some(Ok(receipt)) => receipt.versions.last().copied(),
            Some(Err(error)) => {
                let cause = format!("its position was refused: {error}").into();
                return Err(StoreFailed { cause }.into());
            }
            None => None,
        };
        self.last_version = written.unwrap_or(self.last_version);
        for topic in topics {
            let info = self.copy.store().topic(&topic);
            self.digests.topic(&topic, info.as_ref());
        }
        self.position = position;
        self.note_digest();
        Ok(outcomes)
    }

    /// What the copy has to remember with the commit at `position`. The position comes last, so that its version is
    /// the highest there is.
    fn own_records(&mut self, position: u64) -> Batch {
        let mut batch = Batch::new();
        for (boot, value) in self.boots.take_changed() {
            let key = format!("{BOOT_PREFIX}{boot:016x}").into();
            let expect = Expect::Any;
            batch.change(match value {
                Some(value) => Change::Put {
                    key,
                    value: value.into(),
                    expect,
                },
                None => Change::Delete { key, expect },
            });
        }
        batch.change(Change::Put {
            key: POSITION_KEY.into(),
            value: [&position.to_le_bytes()[..], &self.marks.encode()]
                .concat()
                .into(),
            expect: Expect::Any,
        });
        batch
    }

    /// Goes on behind a message that changes nothing in the copy.
    fn skip(&mut self, position: u64, applied: Applied) -> Applied {
        if position > self.position {
            self.void += u64::from(matches!(applied, Applied::Void));
            self.position = position;
            self.note_digest();
        }
        applied
    }

    fn note_digest(&mut self) {
        self.digest = self.digests.note(self.position, self.last_version);
    }

    fn compare(&mut self, message: &Message) {
        let Progress { position, digest } = message.head.progress;
        let boot = message.head.boot;
        if self.digests.compare(boot, position, digest) == Some(false) {
            tracing::error!(
                position,
                boot = format!("{boot:016x}"),
                "another node's copy differs from this one's"
            );
        }
    }
}

/// The batches of a commit; `None` where the body is none. That is void on every node, for its checksum fits.
fn decode_batches(mut body: &[u8]) -> Option<Vec<Batch>> {
    let mut batches = Vec::new();
    while !body.is_empty() {
        batches.push(Batch::decode(&mut body).ok()?);
    }
    Some(batches)
}

/// The topics that batches may change, most of them once.
fn touched_topics(batches: &[Batch]) -> Vec<Arc<str>> {
    let mut topics: Vec<Arc<str>> = Vec::new();
    for batch in batches {
        for change in batch.changes() {
            if let Change::PutTopic { topic, .. } | Change::DeleteTopic { topic } = change {
                topics.push(topic.clone());
            }
        }
        for event in batch.events() {
            let topic = event.topic();
            if !topics.last().is_some_and(|last| Arc::ptr_eq(last, topic)) {
                topics.push(topic.clone());
            }
        }
    }
    topics.sort_unstable();
    topics.dedup();
    topics
}
