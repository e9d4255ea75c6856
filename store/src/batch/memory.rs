//! The memory of a batch, used again by the next one of its thread: to have the system find new memory for each batch
//! costs as much as encoding its events.

use super::EncodedDraft;
use std::cell::Cell;
use std::mem::take;

/// A batch that took more than this gives its memory back to the system.
const MAX_KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static KEPT: Cell<(Vec<u8>, Vec<EncodedDraft>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// The drafted events of a batch.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    /// The JSON of all events, each in two pieces: what follows the id, and what follows the seq.
    pub(super) text: Vec<u8>,
    pub(super) events: Vec<EncodedDraft>,
}

impl Default for Memory {
    /// Empty, with the room that the thread's last batch had.
    fn default() -> Self {
        // A thread that is ending keeps nothing any more.
        let (text, events) = KEPT.try_with(Cell::take).unwrap_or_default();
        Self { text, events }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let (mut text, mut events) = (take(&mut self.text), take(&mut self.events));
        let bytes = text.capacity() + events.capacity() * size_of::<EncodedDraft>();
        if (1..=MAX_KEPT_BYTES).contains(&bytes) {
            text.clear();
            events.clear();
            let _ = KEPT.try_with(|kept| kept.set((text, events)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, Draft};
    use std::sync::Arc;

    fn batch_of(payload: &str) -> Batch {
        let mut batch = Batch::new();
        let topic: Arc<str> = "t".into();
        let draft = Draft {
            payload,
            ..Draft::default()
        };
        batch.publish(&topic, &draft);
        batch
    }

    #[test]
    fn the_next_batch_has_the_room_and_nothing_of_the_last_one() {
        let first = batch_of(&"1".repeat(10_000));
        let room = first.memory.text.capacity();
        drop(first);
        let next = Batch::new();
        assert!(next.is_empty());
        assert_eq!(next.text_bytes(), 0);
        assert_eq!(next.memory.text.capacity(), room);
    }

    #[test]
    fn two_batches_at_once_do_not_share_memory() {
        drop(batch_of("0"));
        let (one, other) = (batch_of("1"), batch_of("2"));
        let payload = |batch: &Batch| batch.events().next().map(|event| event.payload().to_vec());
        assert_eq!(payload(&one), Some(b"1".to_vec()));
        assert_eq!(payload(&other), Some(b"2".to_vec()));
    }

    #[test]
    fn a_huge_batch_gives_its_memory_back() {
        drop(batch_of(&"1".repeat(super::MAX_KEPT_BYTES)));
        assert_eq!(Batch::new().memory.text.capacity(), 0);
    }
}
