//! The status of a group that has no owner, in as few bytes as it needs: there may be hundreds of thousands of them, and most
//! of their counters are 0.

use super::directory::StoredGroup;
use super::status::GroupStatus;
use prombus_interface::GroupCounts;

/// The counters of a status, its version and the two positions, each in base 128 with the lowest digit first (LEB128).
#[derive(Debug, Clone)]
pub(crate) struct PackedStatus(Box<[u8]>);

const NUMBERS: usize = 14;

impl PackedStatus {
    pub(crate) fn of(group: &StoredGroup) -> Self {
        let GroupStatus {
            counts,
            cursor,
            settled_ahead,
            // No member holds any while there is no owner.
            partitions: _,
        } = group.status;
        let GroupCounts {
            delivered,
            redelivered,
            returned,
            acked,
            nacked,
            expired,
            dead_lettered,
            given_up,
            filtered,
            skipped,
            in_flight,
        } = counts;
        // A record's versions begin with 1.
        let version = group.version.unwrap_or(0);
        let numbers: [u64; NUMBERS] = [
            version,
            cursor,
            settled_ahead,
            delivered,
            redelivered,
            returned,
            acked,
            nacked,
            expired,
            dead_lettered,
            given_up,
            filtered,
            skipped,
            in_flight,
        ];
        let mut bytes = Vec::with_capacity(2 * NUMBERS);
        for mut number in numbers {
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
        }
        Self(bytes.into())
    }

    pub(crate) fn unpack(&self) -> StoredGroup {
        let mut bytes = self.0.iter();
        let numbers: [u64; NUMBERS] = std::array::from_fn(|_| {
            let (mut number, mut shift) = (0, 0);
            for &byte in bytes.by_ref() {
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            number
        });
        let [version, cursor, settled_ahead, counters @ ..] = numbers;
        let [
            delivered,
            redelivered,
            returned,
            acked,
            nacked,
            expired,
            dead_lettered,
            given_up,
            filtered,
            skipped,
            in_flight,
        ] = counters;
        StoredGroup {
            status: GroupStatus {
                counts: GroupCounts {
                    delivered,
                    redelivered,
                    returned,
                    acked,
                    nacked,
                    expired,
                    dead_lettered,
                    given_up,
                    filtered,
                    skipped,
                    in_flight,
                },
                cursor,
                partitions: (0, 0),
                settled_ahead,
            },
            version: Some(version).filter(|version| *version > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(numbers in prop::array::uniform14(
            prop_oneof![Just(0), Just(127), Just(128), Just(u64::MAX), any::<u64>(), 0..300u64],
        )) {
            let [version, cursor, settled_ahead, delivered, redelivered, returned, acked, nacked, expired, dead_lettered,
                given_up, filtered, skipped, in_flight] = numbers;
            let counts = GroupCounts {
                delivered, redelivered, returned, acked, nacked, expired, dead_lettered, given_up, filtered, skipped,
                in_flight,
            };
            let group = StoredGroup {
                status: GroupStatus { counts, cursor, settled_ahead, partitions: (0, 0) },
                version: Some(version).filter(|version| *version > 0),
            };
            let unpacked = PackedStatus::of(&group).unpack();
            prop_assert_eq!((unpacked.status, unpacked.version), (group.status, group.version));
        }
    }
}
