//! Where a group begins or is set to: names for positions, and how they become one.

use crate::core::Core;
use crate::error::{GroupError, InvalidField, UnknownId};
use prombus_store::{Find, MAX_SEQ};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A place in a topic.
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
    pub(crate) fn check(&self) -> Result<(), InvalidField> {
        match self {
            Self::Seq(seq) if !(1..=MAX_SEQ).contains(seq) => {
                Err(InvalidField::new("seq", "must be at least 1"))
            }
            _ => Ok(()),
        }
    }

    /// The position before the place: what a group that begins there has behind it.
    pub(crate) async fn cursor(&self, core: &Core, topic: &Arc<str>) -> Result<u64, GroupError> {
        let info = core.store.topic(topic);
        let tail = info.as_ref().map_or(0, |info| info.tail_seq);
        match self {
            Self::Latest => Ok(tail),
            Self::Earliest => Ok(info.map_or(0, |info| info.first_seq.saturating_sub(1))),
            Self::Seq(seq) => Ok(seq - 1),
            Self::Ts(_) if info.is_none() => Ok(0),
            Self::Ts(ts) => {
                let found = core.store.find(topic, Find::Ts(*ts)).await?;
                Ok(found.map_or(tail, |seq| seq - 1))
            }
            Self::AfterId(id) => {
                let found = match info {
                    Some(_) => core.store.find(topic, Find::Id(id)).await?,
                    None => None,
                };
                found.ok_or_else(|| UnknownId::new(topic, id).into())
            }
        }
    }
}
