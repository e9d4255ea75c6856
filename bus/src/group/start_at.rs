//! How a place in a topic becomes a position.

use crate::core::Core;
use crate::error::{GroupError, UnknownId};
use prombus_interface::StartAt;
use prombus_store::Find;
use std::sync::Arc;

/// The position before a place: what a group that begins there has behind it.
pub(crate) async fn cursor_at(
    place: &StartAt,
    core: &Core,
    topic: &Arc<str>,
) -> Result<u64, GroupError> {
    let info = core.store.topic(topic);
    let tail = info.as_ref().map_or(0, |info| info.tail_seq);
    match place {
        StartAt::Latest => Ok(tail),
        StartAt::Earliest => Ok(info.map_or(0, |info| info.first_seq.saturating_sub(1))),
        StartAt::Seq(seq) => Ok(seq - 1),
        StartAt::Ts(_) if info.is_none() => Ok(0),
        StartAt::Ts(ts) => {
            let found = core.store.find(topic, Find::Ts(*ts)).await?;
            Ok(found.map_or(tail, |seq| seq - 1))
        }
        StartAt::AfterId(id) => {
            let found = match info {
                Some(_) => core.store.find(topic, Find::Id(id)).await?,
                None => None,
            };
            found.ok_or_else(|| UnknownId::new(topic, id).into())
        }
    }
}
