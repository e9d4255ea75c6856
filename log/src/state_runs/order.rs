//! The records of a run: how they are sorted, and what two of one key are together.

use crate::record::{StateRecord, TopicRecord};
use std::fmt;
use std::sync::Arc;

/// What a record is about. Runs are sorted by this: topics by number, then keyed records by key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StateKey {
    Topic(u32),
    Keyed(Arc<str>),
}

impl StateKey {
    /// `None` for records that have no place in a run.
    pub(super) fn of(record: &StateRecord) -> Option<Self> {
        Some(match record {
            StateRecord::TopicPut(topic) => Self::Topic(topic.number),
            StateRecord::TopicProgress { number, .. } | StateRecord::TopicDelete { number } => {
                Self::Topic(*number)
            }
            StateRecord::KeyedPut { key, .. } | StateRecord::KeyedDelete { key } => {
                Self::Keyed(key.clone())
            }
            _ => return None,
        })
    }
}

impl fmt::Display for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic(number) => write!(f, "topic number {number}"),
            Self::Keyed(key) => write!(f, "key {key:?}"),
        }
    }
}

/// Whether a record only says that something is gone.
pub(super) fn is_deletion(record: &StateRecord) -> bool {
    matches!(
        record,
        StateRecord::TopicDelete { .. } | StateRecord::KeyedDelete { .. }
    )
}

/// What an older and a newer record of one key say together. A topic's number is never given again, so what is deleted
/// stays so, and its positions and its clock only grow.
pub(super) fn combine(older: StateRecord, newer: StateRecord) -> StateRecord {
    match (older, newer) {
        (deleted @ StateRecord::TopicDelete { .. }, _) => deleted,
        (StateRecord::TopicPut(before), StateRecord::TopicPut(mut topic)) => {
            topic.advance(before.next_seq, before.first_seq, before.last_ts);
            StateRecord::TopicPut(topic)
        }
        (StateRecord::TopicPut(mut topic), progress @ StateRecord::TopicProgress { .. })
        | (progress @ StateRecord::TopicProgress { .. }, StateRecord::TopicPut(mut topic)) => {
            advance_by(&mut topic, &progress);
            StateRecord::TopicPut(topic)
        }
        (
            StateRecord::TopicProgress {
                next_seq: seq,
                first_seq: first,
                last_ts: ts,
                ..
            },
            StateRecord::TopicProgress {
                number,
                next_seq,
                first_seq,
                last_ts,
            },
        ) => StateRecord::TopicProgress {
            number,
            next_seq: next_seq.max(seq),
            first_seq: first_seq.max(first),
            last_ts: last_ts.max(ts),
        },
        (_, newer) => newer,
    }
}

fn advance_by(topic: &mut TopicRecord, progress: &StateRecord) {
    if let StateRecord::TopicProgress {
        next_seq,
        first_seq,
        last_ts,
        ..
    } = progress
    {
        topic.advance(*next_seq, *first_seq, *last_ts);
    }
}
