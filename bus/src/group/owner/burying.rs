//! Dead letters: the events whose last attempt failed are read once more and written to `dlq.<topic>`, in one atomic
//! step with the group's record in which they are settled.

use super::writing::Writing;
use super::{Existence, Owner};
use crate::core::Core;
use crate::error::UnknownTopic;
use crate::group::history::{Attempt, History};
use crate::names::dead_letter_topic;
use prombus_store::{Batch, Draft, ReadError, ReadLimit, StoredEvent};
use serde::Serialize;
use serde_json::value::RawValue;
use std::pin::Pin;
use std::sync::Arc;

/// How many dead letters one step writes at most.
const MAX_LETTERS: usize = 64;
/// About how many bytes of originals one step writes.
const MAX_LETTER_BYTES: usize = 4 << 20;

/// Originals that are being read.
pub(super) struct Gathering(Pin<Box<dyn Future<Output = Gathered> + Send>>);

/// What was read of them.
pub(super) struct Gathered {
    letters: Vec<Letter>,
    /// Events that have to be taken up again.
    left: Vec<u64>,
    /// Whether that is because reading failed.
    failed: bool,
}

/// An event whose last attempt failed.
struct Letter {
    seq: u64,
    history: History,
    /// `None` where the log no longer holds it.
    original: Option<StoredEvent>,
}

/// The payload of a dead letter.
#[derive(Serialize)]
struct LetterPayload<'a> {
    topic: &'a str,
    group: &'a str,
    /// The whole record, byte for byte.
    original: &'a RawValue,
    err: &'a str,
    ts: u64,
    attempts: u32,
    history: &'a [Attempt],
}

/// Waits for the originals, for ever where none are being read.
pub(super) async fn done(gathering: &mut Option<Gathering>) -> Gathered {
    let Some(Gathering(answer)) = gathering else {
        return std::future::pending().await;
    };
    let gathered = answer.as_mut().await;
    *gathering = None;
    gathered
}

impl Owner {
    /// Begins to read the originals of events that are to be dead letters.
    pub(super) fn gather(&mut self) {
        let dying = self.state.take_dying(MAX_LETTERS);
        if !dying.is_empty() {
            let gathered = gather(self.core.clone(), self.name.topic.clone(), dying);
            self.gathering = Some(Gathering(Box::pin(gathered)));
        }
    }

    /// Keeps the letters until they can be written.
    pub(super) fn take_gathered(&mut self, gathered: Gathered) {
        let now_ms = self.now_ms();
        self.state.not_buried(&gathered.left);
        if gathered.failed {
            self.flushing.failed(now_ms, &self.core.options);
        }
        for letter in gathered.letters {
            match letter.original {
                Some(original) => self.burial.push((letter.seq, letter.history, original)),
                None => self.state.gone(letter.seq, now_ms),
            }
        }
    }

    /// Begins to write the letters that were gathered.
    pub(super) fn bury(&mut self, now_ms: u64) {
        let mut originals = std::mem::take(&mut self.burial);
        // One may have turned out to be settled while its event was read.
        originals.retain(|(seq, ..)| self.state.is_dying(*seq));
        if originals.is_empty() {
            return;
        }
        let seqs: Vec<u64> = originals.iter().map(|(seq, ..)| *seq).collect();
        match self.burial_batch(&originals, &seqs) {
            Ok(batch) => {
                let changes = self.state.changes();
                let store = self.core.store.clone();
                let writing = Writing::begin(batch, changes, now_ms, |batch| store.commit(batch));
                self.writing = Some(writing.burying(seqs));
            }
            Err(_) => {
                self.state.not_buried(&seqs);
                self.flushing.failed(now_ms, &self.core.options);
            }
        }
    }

    fn burial_batch(
        &self,
        originals: &[(u64, History, StoredEvent)],
        seqs: &[u64],
    ) -> Result<Batch, UnknownTopic> {
        let topic: Arc<str> = dead_letter_topic(&self.name.topic).into();
        self.core.topics.ensure(&topic, true)?;
        let mut batch = Batch::atomic();
        for (_, history, original) in originals {
            let payload = self.letter(history, original);
            batch.publish(
                &topic,
                &Draft {
                    payload: &payload,
                    caused_by: &[original.id().into_owned()],
                    ..Draft::default()
                },
            );
        }
        if let Existence::Stored { version } = self.existence {
            batch.change(self.record_change(version, seqs));
        }
        Ok(batch)
    }

    fn letter(&self, history: &History, original: &StoredEvent) -> String {
        // What the log gives back was written as JSON; where it is not, the letter still tells the rest.
        let original = serde_json::from_str(original.json()).unwrap_or(RawValue::NULL);
        let payload = LetterPayload {
            topic: &self.name.topic,
            group: &self.name.group,
            original,
            err: history.last_reason(),
            ts: self.core.now_ms(),
            attempts: history.attempts,
            history: &history.told,
        };
        serde_json::to_string(&payload).unwrap_or_default()
    }
}

/// Reads the originals one by one, until they are many bytes.
async fn gather(core: Arc<Core>, topic: Arc<str>, dying: Vec<(u64, History)>) -> Gathered {
    let limit = ReadLimit {
        events: 1,
        bytes: 1,
    };
    let mut gathered = Gathered {
        letters: Vec::with_capacity(dying.len()),
        left: Vec::new(),
        failed: false,
    };
    let mut bytes = 0;
    for (seq, history) in dying {
        if gathered.failed || bytes >= MAX_LETTER_BYTES {
            gathered.left.push(seq);
            continue;
        }
        let original = match core.store.read(&topic, seq, limit).await {
            Ok(page) => page.events.into_iter().find(|event| event.seq() == seq),
            Err(ReadError::UnknownTopic(_)) => None,
            Err(ReadError::Failed { .. }) => {
                gathered.failed = true;
                gathered.left.push(seq);
                continue;
            }
        };
        bytes += original.as_ref().map_or(0, StoredEvent::stored_bytes);
        gathered.letters.push(Letter {
            seq,
            history,
            original,
        });
    }
    gathered
}
