//! One record of marks: those ids of a scope that hash to it, each with the moment when it runs out.

use super::{MAX_SLOT_MARKS, SLOTS};
use crate::error::DedupeError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the keys of all slots begin with.
pub(super) const KEY_PREFIX: &str = "dedupe/";

/// The form this code writes. A record of a later form is refused rather than misread.
const SLOT_VERSION: u32 = 1;

/// The marks of one slot.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Slot {
    /// The form of the record.
    version: u32,
    /// Ids, and when their marks run out, in epoch milliseconds.
    marks: Vec<(String, u64)>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            version: SLOT_VERSION,
            marks: Vec::new(),
        }
    }
}

/// The key of the record that holds the mark of `id`, if there is one.
pub(super) fn slot_key(scope: &str, id: &str) -> Arc<str> {
    let slot = hash(id) % SLOTS;
    format!("{KEY_PREFIX}{scope}/{slot:03x}").into()
}

impl Slot {
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, DedupeError> {
        let slot: Self = serde_json::from_slice(bytes).map_err(DedupeError::failed)?;
        if slot.version > SLOT_VERSION {
            let found = slot.version;
            let reason = format!("format {found} of the marks is newer than {SLOT_VERSION}");
            return Err(DedupeError::failed(reason));
        }
        Ok(slot)
    }

    pub(super) fn to_bytes(&self) -> Arc<[u8]> {
        // Strings, numbers and lists are always written.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    pub(super) fn holds(&self, id: &str, now_ms: u64) -> bool {
        let mut marks = self.marks.iter();
        marks.any(|(marked, until_ms)| marked == id && *until_ms > now_ms)
    }

    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Drops the marks that have run out, and says how many.
    pub(super) fn drop_run_out(&mut self, now_ms: u64) -> u64 {
        let before = self.marks.len();
        self.marks.retain(|(_, until_ms)| *until_ms > now_ms);
        (before - self.marks.len()) as u64
    }

    /// Adds a mark or renews it, and says how many others had to go for it.
    pub(super) fn add(&mut self, id: &str, until_ms: u64) -> u64 {
        if let Some((_, known_until_ms)) = self.marks.iter_mut().find(|(marked, _)| marked == id) {
            *known_until_ms = until_ms.max(*known_until_ms);
            return 0;
        }
        let mut forgotten = 0;
        while self.marks.len() >= MAX_SLOT_MARKS {
            let places = 0..self.marks.len();
            let Some(first_out) = places.min_by_key(|&place| self.marks[place].1) else {
                break;
            };
            self.marks.remove(first_out);
            forgotten += 1;
        }
        self.marks.push((id.to_owned(), until_ms));
        forgotten
    }
}

/// FNV-1a, and the finalizer of splitmix64, which lets every byte reach the low bits. It is part of what is stored:
/// with another hash marks would not be found again.
fn hash(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (fnv ^ fnv >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_in_the_slot_they_were_marked_in() {
        assert_eq!(&*slot_key("t/g", "a"), "dedupe/t/g/0f8");
        let used: std::collections::HashSet<_> = (0..20_000)
            .map(|number| slot_key("s", &format!("id-{number}")))
            .collect();
        assert!(used.len() > 4_000, "{} slots are used", used.len());
    }

    #[test]
    fn the_mark_that_would_run_out_first_makes_room() {
        let mut slot = Slot::default();
        for number in 0..MAX_SLOT_MARKS as u64 {
            assert_eq!(slot.add(&number.to_string(), 1_000 - number), 0);
        }
        assert_eq!(slot.add("0", 2_000), 0, "it is there already");
        assert_eq!(slot.add("new", 1_500), 1);
        assert_eq!(slot.len(), MAX_SLOT_MARKS);
        assert!(slot.holds("new", 0) && slot.holds("0", 1_999) && !slot.holds("127", 0));
    }

    #[test]
    fn what_is_written_reads_back_and_a_later_form_is_refused() {
        let mut slot = Slot::default();
        slot.add("a\"b", 7);
        let read = Slot::from_bytes(&slot.to_bytes()).expect("it reads back");
        assert_eq!(read, slot);
        assert!(Slot::from_bytes(br#"{"version":2,"marks":[]}"#).is_err());
        assert!(Slot::from_bytes(b"{").is_err());
    }
}
