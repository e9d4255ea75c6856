//! What the shared log says about its snapshots. It follows from the messages alone, so every node knows the same.

use crate::message::{Head, Kind};

/// Snapshots that were begun and made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Marks {
    /// The position at which the last one was begun; 0 before the first.
    pub(crate) begun: u64,
    /// The boot that makes it.
    pub(crate) begun_by: u64,
    /// The newest one that is durable; 0 where there is none.
    pub(crate) durable: u64,
    /// How many bytes it has.
    pub(crate) durable_bytes: u64,
    /// When that was said, by the clock of the node that made it.
    pub(crate) durable_at_ms: u64,
    /// Bytes of messages since the last one was begun.
    pub(crate) bytes: u64,
}

impl Marks {
    /// How many bytes [`Self::encode`] writes.
    pub(crate) const BYTES: usize = 48;

    /// Takes in a message of the log; `true` where a snapshot is begun there.
    pub(crate) fn take(&mut self, position: u64, head: &Head, body: &[u8]) -> bool {
        let Some((named, rest)) = body.split_first_chunk() else {
            return false;
        };
        let named = u64::from_le_bytes(*named);
        match head.kind {
            // Of several that nodes begin at once the first one counts.
            Kind::BeginSnapshot if named == self.begun => {
                (self.begun, self.begun_by, self.bytes) = (position, head.boot, 0);
                true
            }
            Kind::Snapshot if named > self.durable && named <= self.begun => {
                (self.durable, self.durable_at_ms) = (named, head.now_ms);
                let bytes = rest.first_chunk().copied();
                self.durable_bytes = bytes.map_or(0, u64::from_le_bytes);
                false
            }
            _ => false,
        }
    }

    /// What a message of [`Kind::Snapshot`] says.
    pub(crate) fn durable_body(position: u64, bytes: u64) -> Vec<u8> {
        [position, bytes].map(u64::to_le_bytes).concat()
    }

    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let numbers = [
            self.begun,
            self.begun_by,
            self.durable,
            self.durable_at_ms,
            self.bytes,
            self.durable_bytes,
        ];
        let mut out = [0; Self::BYTES];
        out.copy_from_slice(numbers.map(u64::to_le_bytes).as_flattened());
        out
    }

    pub(crate) fn decode(value: &[u8; Self::BYTES]) -> Self {
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&value[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        Self {
            begun: number(0),
            begun_by: number(8),
            durable: number(16),
            durable_at_ms: number(24),
            bytes: number(32),
            durable_bytes: number(40),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Progress, RULES};

    fn head(kind: Kind, boot: u64) -> Head {
        Head {
            kind,
            rules: RULES,
            boot,
            number: 1,
            now_ms: 9,
            part: 1,
            parts: 1,
            progress: Progress::default(),
        }
    }

    #[test]
    fn the_first_of_several_counts_and_what_is_durable_only_grows() {
        let mut marks = Marks::default();
        let mut take = |position, kind, boot, named: u64| {
            let begun = marks.take(position, &head(kind, boot), &named.to_le_bytes());
            (begun, marks.begun, marks.durable)
        };
        assert_eq!(take(5, Kind::BeginSnapshot, 1, 0), (true, 5, 0));
        assert_eq!(take(6, Kind::BeginSnapshot, 2, 0), (false, 5, 0));
        assert_eq!(take(7, Kind::BeginSnapshot, 2, 5), (true, 7, 0));
        assert_eq!(take(8, Kind::Snapshot, 1, 5), (false, 7, 5));
        assert_eq!(take(9, Kind::Snapshot, 1, 9), (false, 7, 5));
        assert_eq!(take(9, Kind::Snapshot, 2, 7), (false, 7, 7));
        assert_eq!(take(10, Kind::Snapshot, 2, 5), (false, 7, 7));
        assert_eq!(Marks::decode(&marks.encode()), marks);
    }
}
