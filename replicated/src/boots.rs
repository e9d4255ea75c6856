//! The boots that have sent messages: which number of each comes next, and the parts of commits that are not complete.
//! Whether a message counts is decided here, from nothing but the messages before it.

use crate::message::{Head, Message};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};

/// How many boots are remembered. Beyond it the one that was silent for longest is forgotten; a node whose boot is
/// forgotten draws another.
pub(crate) const MAX_BOOTS: usize = 256;
/// A commit has at most this many parts; what says more is without effect.
pub(crate) const MAX_PARTS: u32 = 4096;

/// What is known of all boots.
#[derive(Debug, Default)]
pub(crate) struct Boots {
    known: HashMap<u64, Boot>,
    /// Which ones have changed since they were last written down, and whether they are still known.
    changed: BTreeMap<u64, bool>,
}

/// What is known of one boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Boot {
    /// The number of its last message that counted.
    pub(crate) number: u64,
    /// Where that message is.
    pub(crate) position: u64,
    /// Where the parts of its incomplete commit are.
    part_positions: Vec<u64>,
    /// The parts themselves; fetched again after a restart.
    parts: Vec<Bytes>,
    /// How many parts that commit has.
    wanted_parts: u32,
}

/// What a message amounts to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Nothing: it came twice, or out of its boot's order.
    Void,
    /// A part of a commit of which others are missing, or that can never be complete.
    Part,
    /// A whole commit, with this body.
    Whole(Bytes),
}

impl Boots {
    /// The number of the boot's last message; 0 where it is not known.
    pub(crate) fn last_number(&self, boot: u64) -> u64 {
        self.known.get(&boot).map_or(0, |boot| boot.number)
    }

    /// Takes in the message at `position`.
    pub(crate) fn count(&mut self, position: u64, message: &Message) -> Counted {
        let Head {
            boot,
            number,
            part,
            parts,
            ..
        } = message.head;
        if number != self.last_number(boot).wrapping_add(1) {
            return Counted::Void;
        }
        let known = self.known.entry(boot).or_default();
        known.number = number;
        known.position = position;
        let counted = known.take(position, part, parts, &message.body);
        self.changed.insert(boot, true);
        self.forget_oldest();
        counted
    }

    /// Takes in a part that was counted before a restart; `false` where none is missing at this position.
    pub(crate) fn fetch_part(&mut self, position: u64, message: &Message) -> bool {
        let Some(known) = self.known.get_mut(&message.head.boot) else {
            return false;
        };
        let is_next = known.part_positions.get(known.parts.len()) == Some(&position);
        if is_next {
            known.wanted_parts = message.head.parts;
            known.parts.push(message.body.clone());
        }
        is_next
    }

    /// The first position that has to be read again after a restart, for a part that was counted before it.
    pub(crate) fn first_part(&self) -> Option<u64> {
        let firsts = self.known.values();
        firsts
            .filter_map(|boot| boot.part_positions.first().copied())
            .min()
    }

    /// How many parts of a boot's incomplete commit there are.
    pub(crate) fn parts_of(&self, boot: u64) -> usize {
        let known = self.known.get(&boot);
        known.map_or(0, |known| known.part_positions.len())
    }

    /// Gives up all commits that are not complete.
    pub(crate) fn drop_parts(&mut self) {
        for (boot, known) in &mut self.known {
            if !known.part_positions.is_empty() {
                known.drop_parts();
                self.changed.insert(*boot, true);
            }
        }
    }

    /// What has changed since the last call: boots to write down, and boots to forget.
    pub(crate) fn take_changed(&mut self) -> Vec<(u64, Option<Vec<u8>>)> {
        let changed = std::mem::take(&mut self.changed);
        let boots = changed.into_keys();
        boots
            .map(|boot| (boot, self.known.get(&boot).map(Boot::encode)))
            .collect()
    }

    /// Puts back a boot that was written down.
    pub(crate) fn load(&mut self, boot: u64, value: &[u8]) -> Option<()> {
        self.known.insert(boot, Boot::decode(value)?);
        Some(())
    }

    fn forget_oldest(&mut self) {
        if self.known.len() <= MAX_BOOTS {
            return;
        }
        let oldest = self.known.iter().min_by_key(|(_, boot)| boot.position);
        if let Some(oldest) = oldest.map(|(&boot, _)| boot) {
            self.known.remove(&oldest);
            self.changed.insert(oldest, false);
        }
    }
}

impl Boot {
    fn take(&mut self, position: u64, part: u32, parts: u32, body: &Bytes) -> Counted {
        let goes_on = part > 1
            && parts == self.wanted_parts
            && part as usize == self.part_positions.len() + 1
            && self.parts.len() == self.part_positions.len();
        if !goes_on {
            self.drop_parts();
        }
        if parts == 1 {
            return Counted::Whole(body.clone());
        }
        if parts > MAX_PARTS || !(goes_on || part == 1) {
            return Counted::Part;
        }
        self.wanted_parts = parts;
        self.part_positions.push(position);
        self.parts.push(body.clone());
        if part < parts {
            return Counted::Part;
        }
        let whole = self.parts.concat();
        self.drop_parts();
        Counted::Whole(whole.into())
    }

    fn drop_parts(&mut self) {
        self.part_positions.clear();
        self.parts.clear();
        self.wanted_parts = 0;
    }

    fn encode(&self) -> Vec<u8> {
        let numbers = [self.number, self.position].into_iter();
        let numbers = numbers.chain(self.part_positions.iter().copied());
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (numbers, rest) = value.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let boot = Self {
            number: numbers.next()?,
            position: numbers.next()?,
            part_positions: numbers.collect(),
            ..Self::default()
        };
        rest.is_empty().then_some(boot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Kind, Progress, RULES};

    fn message(boot: u64, number: u64, (part, parts): (u32, u32), body: &str) -> Message {
        let head = Head {
            kind: Kind::Batches,
            rules: RULES,
            boot,
            number,
            now_ms: 1,
            part,
            parts,
            progress: Progress::default(),
        };
        let bytes = Message::encode(&head, body.as_bytes());
        Message::decode(&bytes).expect("a message")
    }

    fn whole(text: &'static str) -> Counted {
        Counted::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn each_number_counts_once_and_in_order() {
        let mut boots = Boots::default();
        let mut count =
            |number| boots.count(number, &message(7, number, (1, 1), "x")) == whole("x");
        let counted = [1, 1, 3, 2, 2, 1, 3].map(&mut count);
        assert_eq!(counted, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn parts_of_two_boots_do_not_mix() {
        let mut boots = Boots::default();
        assert_eq!(boots.count(1, &message(1, 1, (1, 2), "a")), Counted::Part);
        assert_eq!(boots.count(2, &message(2, 1, (1, 2), "c")), Counted::Part);
        assert_eq!(boots.count(3, &message(1, 1, (1, 2), "a")), Counted::Void);
        assert_eq!(boots.count(4, &message(1, 2, (2, 2), "b")), whole("ab"));
        assert_eq!(boots.count(5, &message(2, 2, (2, 2), "d")), whole("cd"));
        assert_eq!(boots.first_part(), None);
    }

    #[test]
    fn an_abandoned_commit_leaves_nothing_behind() {
        let mut boots = Boots::default();
        assert_eq!(boots.count(1, &message(1, 1, (1, 3), "a")), Counted::Part);
        assert_eq!(boots.count(2, &message(1, 2, (1, 1), "b")), whole("b"));
        assert_eq!(boots.count(3, &message(1, 3, (2, 3), "c")), Counted::Part);
        assert_eq!(boots.count(4, &message(1, 4, (3, 3), "d")), Counted::Part);
        assert_eq!(boots.count(5, &message(1, 5, (1, 1), "e")), whole("e"));
    }

    #[test]
    fn parts_are_fetched_again_after_a_restart() {
        let mut before = Boots::default();
        let parts = [message(1, 1, (1, 3), "a"), message(1, 2, (2, 3), "b")];
        before.count(4, &parts[0]);
        before.count(6, &parts[1]);
        let mut after = Boots::default();
        for (boot, value) in before.take_changed() {
            after.load(boot, &value.expect("known")).expect("a boot");
        }
        assert_eq!(after.first_part(), Some(4));
        assert!(after.fetch_part(4, &parts[0]));
        assert!(!after.fetch_part(5, &parts[1]));
        assert!(after.fetch_part(6, &parts[1]));
        assert_eq!(after.count(7, &message(1, 3, (3, 3), "c")), whole("abc"));
    }

    #[test]
    fn parts_that_were_given_up_do_not_become_a_commit() {
        let mut boots = Boots::default();
        boots.count(1, &message(1, 1, (1, 2), "a"));
        boots.take_changed();
        boots.drop_parts();
        assert_eq!((boots.first_part(), boots.parts_of(1)), (None, 0));
        assert_eq!(boots.take_changed().len(), 1);
        assert_eq!(boots.count(2, &message(1, 2, (2, 2), "b")), Counted::Part);
        assert_eq!(boots.count(3, &message(1, 3, (1, 1), "c")), whole("c"));
    }

    #[test]
    fn the_boot_that_was_silent_longest_is_forgotten() {
        let mut boots = Boots::default();
        for boot in 0..=MAX_BOOTS as u64 {
            boots.count(boot + 1, &message(boot, 1, (1, 1), ""));
        }
        assert_eq!(boots.known.len(), MAX_BOOTS);
        assert_eq!((boots.last_number(0), boots.last_number(1)), (0, 1));
        let changed = boots.take_changed();
        assert_eq!(changed.first(), Some(&(0, None)));
        assert_eq!(boots.take_changed(), []);
    }
}
