//! What a program may know and ask of a group: where it begins, in which order it gets events, how it is doing, and why
//! nothing is flowing.

mod counts;
mod explain;
mod info;

pub use counts::GroupCounts;
pub use explain::{Explanation, LaneInfo, Reason};
pub use info::{Cursor, GroupInfo, Lag, MemberInfo, SeekEffect};

use crate::invalid_field::InvalidField;
use prombus_store::MAX_SEQ;
use serde::{Deserialize, Serialize};

/// In which order a group gets events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ordering {
    /// Any member with room gets the next event.
    #[default]
    None,
    /// At most one event per key is under way, in log order; events without a key are not ordered.
    Key,
}

/// A place in a topic: where a new group begins, where a cursor is set to, where a reader starts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartAt {
    /// What is published from now on.
    #[default]
    Latest,
    /// The oldest event that is kept.
    Earliest,
    /// The first event at or after this time, in epoch milliseconds.
    Ts(u64),
    /// The event after the one with this id.
    AfterId(String),
    /// The event at this position.
    Seq(u64),
}

impl StartAt {
    /// Checks that there can be such a place.
    pub fn check(&self) -> Result<(), InvalidField> {
        match self {
            Self::Seq(seq) if !(1..=MAX_SEQ).contains(seq) => {
                Err(InvalidField::new("seq", "must be at least 1"))
            }
            _ => Ok(()),
        }
    }
}
