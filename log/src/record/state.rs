//! The records beside events: keyed records, topics, and the marks that end a checkpoint and tell what is synced. Integers are
//! little-endian, texts are `length u32 | bytes`.

use super::frame::{Frame, Kind};
use prombus_store::record::{FRAME_BYTES, finish_frame, start_frame};
use prombus_store::{Durability, TopicOptions};
use std::sync::Arc;

/// A record that changes the log's state and is no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateRecord {
    KeyedPut {
        key: Arc<str>,
        version: u64,
        value: Arc<[u8]>,
    },
    KeyedDelete {
        key: Arc<str>,
    },
    /// A topic with everything the log must know to go on with it: written when it is made or changed, and in each
    /// checkpoint.
    TopicPut(TopicRecord),
    TopicDelete {
        number: u32,
    },
    Trim {
        number: u32,
        first_seq: u64,
    },
    /// How far a topic has come, in a state run: no position below `next_seq` is free, none below `first_seq` is kept.
    TopicProgress {
        number: u32,
        next_seq: u64,
        first_seq: u64,
        last_ts: u64,
    },
    /// The first record of a segment. In format 1 the state at the segment's start comes before it.
    CheckpointEnd {
        next_topic_number: u32,
        log_id: u64,
    },
    /// How the segment before this one ended: its length, and the next position of each topic that has events in it.
    SegmentEnd {
        bytes: u64,
        next_seqs: Vec<(u32, u64)>,
    },
    /// When this was written, the segment's first `bytes` were known to be synced: what is damaged there was lost
    /// by the disk, not by a crash.
    Synced {
        bytes: u64,
    },
}

/// What the log knows of a topic beside its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicRecord {
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
    pub(crate) options: Arc<TopicOptions>,
    pub(crate) next_seq: u64,
    pub(crate) first_seq: u64,
    /// The latest ts the log itself has given in the topic.
    pub(crate) last_ts: u64,
}

const NONE: u64 = u64::MAX;

impl StateRecord {
    /// Appends the record; `flags` is `LAST_OF_BATCH` or 0.
    pub(crate) fn write(&self, out: &mut Vec<u8>, flags: u8) {
        let start = start_frame(out, self.kind() as u8, flags);
        match self {
            Self::KeyedPut {
                key,
                version,
                value,
            } => {
                put_text(out, key.as_bytes());
                out.extend_from_slice(&version.to_le_bytes());
                put_text(out, value);
            }
            Self::KeyedDelete { key } => put_text(out, key.as_bytes()),
            Self::TopicPut(topic) => topic.write(out),
            Self::TopicDelete { number } => out.extend_from_slice(&number.to_le_bytes()),
            Self::Trim { number, first_seq } => {
                out.extend_from_slice(&number.to_le_bytes());
                out.extend_from_slice(&first_seq.to_le_bytes());
            }
            Self::TopicProgress {
                number,
                next_seq,
                first_seq,
                last_ts,
            } => {
                out.extend_from_slice(&number.to_le_bytes());
                for number in [next_seq, first_seq, last_ts] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
            }
            Self::SegmentEnd { bytes, next_seqs } => {
                out.extend_from_slice(&bytes.to_le_bytes());
                for (number, next_seq) in next_seqs {
                    out.extend_from_slice(&number.to_le_bytes());
                    out.extend_from_slice(&next_seq.to_le_bytes());
                }
            }
            Self::CheckpointEnd {
                next_topic_number,
                log_id,
            } => {
                out.extend_from_slice(&next_topic_number.to_le_bytes());
                out.extend_from_slice(&log_id.to_le_bytes());
            }
            Self::Synced { bytes } => out.extend_from_slice(&bytes.to_le_bytes()),
        }
        finish_frame(out, start);
    }

    /// Reads the record that `frame` found at `at`; `None` where its content makes no sense.
    pub(crate) fn read(block: &[u8], at: usize, frame: &Frame) -> Option<Self> {
        let mut content = Content(block.get(at + FRAME_BYTES + 2..at + frame.bytes)?);
        Some(match frame.kind {
            Kind::Event => return None,
            Kind::KeyedPut => Self::KeyedPut {
                key: content.text()?.into(),
                version: content.u64()?,
                value: content.bytes()?.into(),
            },
            Kind::KeyedDelete => Self::KeyedDelete {
                key: content.text()?.into(),
            },
            Kind::TopicPut => Self::TopicPut(TopicRecord::read(&mut content)?),
            Kind::TopicDelete => Self::TopicDelete {
                number: content.u32()?,
            },
            Kind::Trim => Self::Trim {
                number: content.u32()?,
                first_seq: content.u64()?,
            },
            Kind::TopicProgress => Self::TopicProgress {
                number: content.u32()?,
                next_seq: content.u64()?,
                first_seq: content.u64()?,
                last_ts: content.u64()?,
            },
            Kind::SegmentEnd => {
                let bytes = content.u64()?;
                let mut next_seqs = Vec::with_capacity(content.0.len() / 12);
                while !content.0.is_empty() {
                    next_seqs.push((content.u32()?, content.u64()?));
                }
                Self::SegmentEnd { bytes, next_seqs }
            }
            Kind::CheckpointEnd => Self::CheckpointEnd {
                next_topic_number: content.u32()?,
                log_id: content.u64()?,
            },
            Kind::Synced => Self::Synced {
                bytes: content.u64()?,
            },
        })
    }

    fn kind(&self) -> Kind {
        match self {
            Self::KeyedPut { .. } => Kind::KeyedPut,
            Self::KeyedDelete { .. } => Kind::KeyedDelete,
            Self::TopicPut(_) => Kind::TopicPut,
            Self::TopicDelete { .. } => Kind::TopicDelete,
            Self::Trim { .. } => Kind::Trim,
            Self::TopicProgress { .. } => Kind::TopicProgress,
            Self::CheckpointEnd { .. } => Kind::CheckpointEnd,
            Self::SegmentEnd { .. } => Kind::SegmentEnd,
            Self::Synced { .. } => Kind::Synced,
        }
    }
}

impl TopicRecord {
    /// Moves the topic on; it never goes back.
    pub(crate) fn advance(&mut self, next_seq: u64, first_seq: u64, last_ts: u64) {
        self.next_seq = self.next_seq.max(next_seq);
        self.first_seq = self.first_seq.max(first_seq);
        self.last_ts = self.last_ts.max(last_ts);
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        put_text(out, self.name.as_bytes());
        out.push(match self.options.durability {
            Durability::Fsync => 0,
            Durability::Os => 1,
        });
        out.push(u8::from(self.options.compaction));
        for limit in [
            self.options.retention_ms,
            self.options.max_bytes,
            self.options.max_events,
        ] {
            out.extend_from_slice(&limit.unwrap_or(NONE).to_le_bytes());
        }
        put_text(out, self.options.attributes.as_bytes());
        for number in [self.next_seq, self.first_seq, self.last_ts] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn read(content: &mut Content<'_>) -> Option<Self> {
        let number = content.u32()?;
        let name = content.text()?.into();
        let durability = match content.u8()? {
            0 => Durability::Fsync,
            1 => Durability::Os,
            _ => return None,
        };
        let compaction = content.u8()? != 0;
        let mut limit = || Some(Some(content.u64()?).filter(|&limit| limit != NONE));
        let (retention_ms, max_bytes, max_events) = (limit()?, limit()?, limit()?);
        let options = TopicOptions {
            durability,
            retention_ms,
            max_bytes,
            max_events,
            compaction,
            attributes: content.text()?.into(),
        };
        Some(Self {
            number,
            name,
            options: options.into(),
            next_seq: content.u64()?,
            first_seq: content.u64()?,
            last_ts: content.u64()?,
        })
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

/// What is left to read of a record's content.
struct Content<'a>(&'a [u8]);

impl<'a> Content<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LAST_OF_BATCH, read_frame};
    use super::*;
    use proptest::prelude::*;

    fn options() -> impl Strategy<Value = TopicOptions> {
        let limit = || proptest::option::of(0..u64::MAX);
        (
            any::<bool>(),
            any::<bool>(),
            limit(),
            limit(),
            limit(),
            ".*",
        )
            .prop_map(
                |(os, compaction, retention_ms, max_bytes, max_events, attributes)| TopicOptions {
                    durability: if os {
                        Durability::Os
                    } else {
                        Durability::Fsync
                    },
                    retention_ms,
                    max_bytes,
                    max_events,
                    compaction,
                    attributes,
                },
            )
    }

    fn record() -> impl Strategy<Value = StateRecord> {
        let topic = (any::<u32>(), "[a-z.]{1,20}", options(), any::<[u64; 3]>());
        prop_oneof![
            (".*", any::<u64>(), any::<Vec<u8>>()).prop_map(|(key, version, value)| {
                StateRecord::KeyedPut {
                    key: key.into(),
                    version,
                    value: value.into(),
                }
            }),
            ".*".prop_map(|key| StateRecord::KeyedDelete { key: key.into() }),
            topic.prop_map(|(number, name, options, [next_seq, first_seq, last_ts])| {
                StateRecord::TopicPut(TopicRecord {
                    number,
                    name: name.into(),
                    options: options.into(),
                    next_seq,
                    first_seq,
                    last_ts,
                })
            }),
            any::<u32>().prop_map(|number| StateRecord::TopicDelete { number }),
            any::<(u32, u64)>()
                .prop_map(|(number, first_seq)| StateRecord::Trim { number, first_seq }),
            any::<u64>().prop_map(|bytes| StateRecord::Synced { bytes }),
            any::<(u32, [u64; 3])>().prop_map(|(number, [next_seq, first_seq, last_ts])| {
                StateRecord::TopicProgress {
                    number,
                    next_seq,
                    first_seq,
                    last_ts,
                }
            }),
            any::<(u64, Vec<(u32, u64)>)>()
                .prop_map(|(bytes, next_seqs)| StateRecord::SegmentEnd { bytes, next_seqs }),
            any::<(u32, u64)>().prop_map(|(next_topic_number, log_id)| {
                StateRecord::CheckpointEnd {
                    next_topic_number,
                    log_id,
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn state_records_round_trip(record in record(), before in 0usize..9) {
            let mut out = vec![7; before];
            record.write(&mut out, LAST_OF_BATCH);
            let frame = read_frame(&out, before).expect("a whole record");
            prop_assert_eq!(frame.bytes, out.len() - before);
            prop_assert_eq!(StateRecord::read(&out, before, &frame), Some(record));
        }

        #[test]
        fn a_flipped_bit_is_noticed(record in record(), flip in any::<proptest::sample::Index>()) {
            let mut out = Vec::new();
            record.write(&mut out, 0);
            let bit = flip.index(out.len() * 8);
            out[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(read_frame(&out, 0).is_err());
        }
    }
}
