//! One file's content: as it is, as it is for certain on disk, and the changes in between, of which a power loss keeps
//! what the seed says.

use prombus_store::conformance::Random;
use std::collections::HashMap;

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Default)]
pub(super) struct Content {
    current: Vec<u8>,
    /// What was synced, before `changes`.
    synced: Vec<u8>,
    /// What leads from `synced` to `current`.
    changes: Vec<Change>,
}

struct Change {
    what: What,
    fate: Fate,
}

enum What {
    Write { at: usize, bytes: Vec<u8> },
    Resize { bytes: usize },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unsynced,
    /// The sync that should have made it durable failed; no later one makes up for that.
    Unknown,
    /// Durable, but behind a change of unknown fate, so it cannot be folded into the synced content.
    Synced,
}

impl Content {
    pub(super) fn synced(bytes: Vec<u8>) -> Self {
        Self {
            current: bytes.clone(),
            synced: bytes,
            changes: Vec::new(),
        }
    }

    pub(super) fn current(&self) -> &[u8] {
        &self.current
    }

    pub(super) fn write(&mut self, bytes: &[u8], at: usize) {
        if !bytes.is_empty() {
            let bytes = bytes.to_vec();
            self.change(What::Write { at, bytes });
        }
    }

    pub(super) fn resize(&mut self, bytes: usize) {
        self.change(What::Resize { bytes });
    }

    pub(super) fn sync(&mut self) {
        if self
            .changes
            .iter()
            .any(|change| change.fate == Fate::Unknown)
        {
            self.settle(Fate::Synced);
            return;
        }
        for change in self.changes.drain(..) {
            change.what.apply(&mut self.synced);
        }
    }

    pub(super) fn fail_sync(&mut self) {
        self.settle(Fate::Unknown);
    }

    pub(super) fn overwrite(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.current);
        self.synced.clone_from(&self.current);
        self.changes.clear();
    }

    /// What the seed leaves of the file.
    pub(super) fn after_power_loss(&self, random: &mut Random) -> Vec<u8> {
        let doubtful = self.changes.iter().filter(|change| change.is_doubtful());
        match (doubtful.count(), random.index(4)) {
            (0, _) | (_, 0) => self.with_first(0, 0),
            (doubtful, 1) => self.with_first(random.index(doubtful + 1), 0),
            (doubtful, 2) => {
                let kept = random.index(doubtful);
                let torn_at = match self.doubtful(kept) {
                    Some(What::Write { bytes, .. }) => random.index(bytes.len()),
                    _ => 0,
                };
                self.with_first(kept, torn_at)
            }
            (doubtful, _) => self.with_sectors(doubtful, random),
        }
    }

    fn change(&mut self, what: What) {
        what.apply(&mut self.current);
        let fate = Fate::Unsynced;
        self.changes.push(Change { what, fate });
    }

    fn settle(&mut self, fate: Fate) {
        let unsynced = |change: &&mut Change| change.fate == Fate::Unsynced;
        for change in self.changes.iter_mut().filter(unsynced) {
            change.fate = fate;
        }
    }

    fn doubtful(&self, index: usize) -> Option<&What> {
        let mut doubtful = self.changes.iter().filter(|change| change.is_doubtful());
        doubtful.nth(index).map(|change| &change.what)
    }

    /// The first doubtful changes, and of the next one, if it is a write, the first bytes.
    fn with_first(&self, kept: usize, torn_at: usize) -> Vec<u8> {
        let mut content = self.synced.clone();
        self.replay(|change, index| match &change.what {
            _ if index.is_none_or(|index| index < kept) => change.what.apply(&mut content),
            What::Write { at, bytes } if index == Some(kept) => {
                write_over(&mut content, &bytes[..torn_at], *at);
            }
            _ => {}
        });
        content
    }

    /// Each sector as it was after some number of the doubtful changes, and the length likewise.
    fn with_sectors(&self, doubtful: usize, random: &mut Random) -> Vec<u8> {
        let (length, resizes_kept) = self.some_length(doubtful, random);
        let mut kept_of_sector = HashMap::new();
        let mut content = self.synced.clone();
        // File systems give blocks that a lost cut should have freed to no one else, so nothing behind it is there.
        let mut is_behind_lost_cut = false;
        self.replay(|change, index| match (&change.what, index) {
            (what, None) => what.apply(&mut content),
            (what @ What::Resize { .. }, Some(index)) => {
                is_behind_lost_cut |= index >= resizes_kept;
                if !is_behind_lost_cut {
                    what.apply(&mut content);
                }
            }
            (What::Write { at, bytes }, Some(index)) => {
                for (at, bytes) in pieces(*at, bytes) {
                    let kept = kept_of_sector
                        .entry(at / SECTOR_BYTES)
                        .or_insert_with(|| some_count(doubtful, random));
                    if index < *kept && !is_behind_lost_cut {
                        write_over(&mut content, bytes, at);
                    }
                }
            }
        });
        content.resize(length, 0);
        content
    }

    /// A length the file may have, and after how many of the doubtful changes it has it.
    fn some_length(&self, doubtful: usize, random: &mut Random) -> (usize, usize) {
        let kept = some_count(doubtful, random);
        let mut shorter = self.synced.len();
        let mut longer = shorter;
        self.replay(|change, index| {
            if index.is_none_or(|index| index < kept) {
                shorter = change.what.length_after(shorter);
            }
            let is_write = matches!(change.what, What::Write { .. });
            if index.is_none_or(|index| index < kept || index == kept && is_write) {
                longer = change.what.length_after(longer);
            }
        });
        // Half the time the next write's length is there in part.
        let part = random.index(2) * random.index(longer - shorter + 1);
        (shorter + part, kept)
    }

    /// Visits the changes in their order, the doubtful ones with their index among the doubtful.
    fn replay(&self, mut visit: impl FnMut(&Change, Option<usize>)) {
        let mut doubtful = 0;
        for change in &self.changes {
            let index = change.is_doubtful().then_some(doubtful);
            doubtful += usize::from(change.is_doubtful());
            visit(change, index);
        }
    }
}

impl Change {
    fn is_doubtful(&self) -> bool {
        self.fate != Fate::Synced
    }
}

impl What {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => write_over(content, bytes, *at),
            Self::Resize { bytes } => content.resize(*bytes, 0),
        }
    }

    fn length_after(&self, length: usize) -> usize {
        match self {
            Self::Write { at, bytes } => length.max(at + bytes.len()),
            Self::Resize { bytes } => *bytes,
        }
    }
}

/// None, all or some of them, each often enough.
fn some_count(all: usize, random: &mut Random) -> usize {
    match random.index(3) {
        0 => 0,
        1 => all,
        _ => random.index(all + 1),
    }
}

/// The parts of a write that are in one sector each.
fn pieces(at: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let first = SECTOR_BYTES - at % SECTOR_BYTES;
    let (head, tail) = bytes.split_at(first.min(bytes.len()));
    let tails = tail.chunks(SECTOR_BYTES).enumerate();
    let tails = tails.map(move |(index, piece)| (at + first + index * SECTOR_BYTES, piece));
    std::iter::once((at, head)).chain(tails)
}

fn write_over(content: &mut Vec<u8>, bytes: &[u8], at: usize) {
    if bytes.is_empty() {
        return;
    }
    let end = at + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[at..end].copy_from_slice(bytes);
}
