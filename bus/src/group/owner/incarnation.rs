//! A group's record belongs to one incarnation of its topic: positions of a topic that was deleted mean nothing in one
//! that has the same name.

use super::Owner;
use crate::core::Core;
use crate::error::{GroupError, UnknownTopic};
use crate::group::record::{GroupRecord, OWNED_RECORD_VERSION};
use crate::group::start_at::cursor_at;
use prombus_interface::StartAt;
use std::sync::Arc;

/// How often a position is looked for while the topic is deleted and made again meanwhile.
const MAX_POSITION_ATTEMPTS: usize = 16;

impl Owner {
    /// Whether the topic that the group is of is gone. A group that was made before its topic takes the first one.
    pub(super) fn is_stale(&mut self) -> bool {
        let current = self.core.store.incarnation(&self.name.topic);
        if self.incarnation.is_none() {
            self.incarnation = current;
        }
        self.incarnation != current
    }

    /// The group as it is to be stored, with the events in `settling` settled.
    pub(super) fn record(&self, settling: &[u64]) -> GroupRecord {
        self.owned(GroupRecord {
            written_ms: self.core.now_ms(),
            incarnation: self.incarnation,
            ..self.state.to_record(settling)
        })
    }

    /// A record with this owner, where groups have owners.
    pub(super) fn owned(&self, record: GroupRecord) -> GroupRecord {
        match self.owner_record() {
            None => record,
            owner => GroupRecord {
                version: OWNED_RECORD_VERSION,
                owner,
                ..record
            },
        }
    }
}

/// The cursor of a position, and the incarnation of the topic that it was resolved in.
pub(super) async fn resolve_position(
    core: &Core,
    topic: &Arc<str>,
    place: &StartAt,
) -> Result<(u64, Option<u64>), GroupError> {
    for _ in 0..MAX_POSITION_ATTEMPTS {
        let before = core.store.incarnation(topic);
        let cursor = cursor_at(place, core, topic).await?;
        if core.store.incarnation(topic) == before {
            return Ok((cursor, before));
        }
    }
    let topic = topic.clone();
    Err(UnknownTopic { topic }.into())
}
