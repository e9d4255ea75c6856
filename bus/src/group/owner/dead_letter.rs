//! Dead letters: events whose last attempt failed are read once more and written to `dlq.<topic>`, in one atomic
//! batch with the group's record in which they are settled.

use super::persistence::PendingWrite;
use super::{Existence, Owner};
use crate::core::Core;
use crate::error::UnknownTopic;
use crate::group::history::{Attempt, History};
use prombus_interface::names::dead_letter_topic;
use prombus_store::{Batch, Draft, ReadError, ReadFrom, ReadLimit, StoredEvent};
use serde::Serialize;
use serde_json::value::RawValue;
use std::pin::Pin;
use std::sync::Arc;

/// How many dead letters one batch has at most.
const MAX_DEAD_LETTERS: usize = 64;
/// About how many bytes of originals one batch has.
const MAX_DEAD_LETTER_BYTES: usize = 4 << 20;

/// Originals that are being read.
pub(super) struct OriginalsRead(Pin<Box<dyn Future<Output = Originals> + Send>>);

/// What was read of them.
pub(super) struct Originals {
    dead_letters: Vec<DeadLetter>,
    /// Events that have to be taken up again.
    left: Vec<u64>,
    /// Whether that is because reading failed.
    failed: bool,
}

/// An event whose last attempt failed.
struct DeadLetter {
    seq: u64,
    history: History,
    /// `None` where the log no longer holds it.
    original: Option<StoredEvent>,
}

/// The payload of a dead letter.
#[derive(Serialize)]
struct DeadLetterPayload<'a> {
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
pub(super) async fn done(originals_read: &mut Option<OriginalsRead>) -> Originals {
    let Some(OriginalsRead(answer)) = originals_read else {
        return std::future::pending().await;
    };
    let originals = answer.as_mut().await;
    *originals_read = None;
    originals
}

impl Owner {
    /// Begins to read the originals of events that are to be dead letters.
    pub(super) fn read_originals(&mut self) {
        let dead_lettering = self.state.take_dead_lettering(MAX_DEAD_LETTERS);
        if !dead_lettering.is_empty() {
            let originals =
                read_originals(self.core.clone(), self.name.topic.clone(), dead_lettering);
            self.originals_read = Some(OriginalsRead(Box::pin(originals)));
        }
    }

    /// Keeps the letters until they can be written.
    pub(super) fn take_originals(&mut self, originals: Originals) {
        let now_ms = self.now_ms();
        self.state.dead_letter_failed(&originals.left);
        if originals.failed {
            self.flush_schedule.failed(now_ms, &self.core.options);
        }
        for dead_letter in originals.dead_letters {
            match dead_letter.original {
                Some(original) => {
                    self.dead_letters
                        .push((dead_letter.seq, dead_letter.history, original))
                }
                None => self.state.gone(dead_letter.seq, now_ms),
            }
        }
    }

    /// Begins to write the letters that were gathered.
    pub(super) fn write_dead_letters(&mut self, now_ms: u64) {
        let mut originals = std::mem::take(&mut self.dead_letters);
        // One may have turned out to be settled while its event was read.
        originals.retain(|(seq, ..)| self.state.is_dead_lettering(*seq));
        if originals.is_empty() {
            return;
        }
        let seqs: Vec<u64> = originals.iter().map(|(seq, ..)| *seq).collect();
        match self.dead_letter_batch(&originals, &seqs) {
            Ok(batch) => {
                let changes = self.state.changes();
                let store = self.core.store.clone();
                let pending_write =
                    PendingWrite::begin(batch, changes, now_ms, |batch| store.commit(batch));
                self.pending_write = Some(pending_write.with_dead_letters(seqs));
            }
            Err(_) => {
                self.state.dead_letter_failed(&seqs);
                self.flush_schedule.failed(now_ms, &self.core.options);
            }
        }
    }

    fn dead_letter_batch(
        &self,
        originals: &[(u64, History, StoredEvent)],
        seqs: &[u64],
    ) -> Result<Batch, UnknownTopic> {
        let topic: Arc<str> = dead_letter_topic(&self.name.topic).into();
        self.core.topics.ensure(&topic, true)?;
        let mut batch = Batch::atomic();
        for (_, history, original) in originals {
            let payload = self.dead_letter_payload(history, original);
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

    fn dead_letter_payload(&self, history: &History, original: &StoredEvent) -> String {
        // What the log gives back was written as JSON; where it is not, the letter still tells the rest.
        let original = serde_json::from_str(original.json()).unwrap_or(RawValue::NULL);
        let payload = DeadLetterPayload {
            topic: &self.name.topic,
            group: &self.name.group,
            original,
            err: history.last_reason(),
            ts: self.core.now_ms(),
            attempts: history.attempts,
            history: &history.recent,
        };
        serde_json::to_string(&payload).unwrap_or_default()
    }
}

/// Reads the originals one by one, until they are many bytes.
async fn read_originals(
    core: Arc<Core>,
    topic: Arc<str>,
    dead_lettering: Vec<(u64, History)>,
) -> Originals {
    let limit = ReadLimit {
        events: 1,
        bytes: 1,
    };
    let mut originals = Originals {
        dead_letters: Vec::with_capacity(dead_lettering.len()),
        left: Vec::new(),
        failed: false,
    };
    let mut bytes = 0;
    for (seq, history) in dead_lettering {
        if originals.failed || bytes >= MAX_DEAD_LETTER_BYTES {
            originals.left.push(seq);
            continue;
        }
        let original = match core.store.read(&topic, ReadFrom::Seq(seq), limit).await {
            Ok(page) => page.events.into_iter().find(|event| event.seq() == seq),
            Err(ReadError::UnknownTopic(_)) => None,
            Err(ReadError::Failed { .. }) => {
                originals.failed = true;
                originals.left.push(seq);
                continue;
            }
        };
        bytes += original.as_ref().map_or(0, StoredEvent::stored_bytes);
        originals.dead_letters.push(DeadLetter {
            seq,
            history,
            original,
        });
    }
    originals
}
