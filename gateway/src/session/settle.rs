//! Settles events with the owners of their groups: of one topic mostly, of several where a subscription fans in.

use prombus::error::SettleError;
use prombus::{SettleFuture, SettleOp, SubscriptionControl};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most topics of a subscription that are searched for an event of which only the id is known.
const MAX_SEARCHED_TOPICS: usize = 1_024;

/// One result for each event.
type Results = Vec<Result<(), SettleError>>;

/// The results of events that were sent to the owners of their groups, one for each.
pub(super) enum Settling {
    OneTopic(SettleFuture),
    Topics(Pin<Box<dyn Future<Output = Results> + Send>>),
}

impl Settling {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Results> {
        match self {
            Self::OneTopic(results) => Pin::new(results).poll(context),
            Self::Topics(results) => results.as_mut().poll(context),
        }
    }
}

/// Settles events of several topics, each with its topic where that is known. These are sent when this returns.
pub(super) fn settle_by_topic(
    control: SubscriptionControl,
    events: Vec<(Option<Arc<str>>, String)>,
    op: SettleOp,
) -> Settling {
    let mut results = vec![Ok(()); events.len()];
    let mut by_topic: BTreeMap<Arc<str>, (Vec<usize>, Vec<String>)> = BTreeMap::new();
    let mut unknown = Vec::new();
    for (at, (topic, id)) in events.into_iter().enumerate() {
        match topic {
            Some(topic) => {
                let (places, ids) = by_topic.entry(topic).or_default();
                places.push(at);
                ids.push(id);
            }
            None => unknown.push((at, id)),
        }
    }
    let sent: Vec<(Vec<usize>, SettleFuture)> = by_topic
        .into_iter()
        .map(|(topic, (places, ids))| (places, control.settle_ids(&topic, ids, op.clone())))
        .collect();
    Settling::Topics(Box::pin(async move {
        for (places, settled) in sent {
            for (at, result) in places.into_iter().zip(settled.await) {
                results[at] = result;
            }
        }
        for (at, id) in unknown {
            results[at] = search(&control, id, &op).await;
        }
        results
    }))
}

/// Tries one topic after the other, until one holds the event.
async fn search(
    control: &SubscriptionControl,
    id: String,
    op: &SettleOp,
) -> Result<(), SettleError> {
    let mut unknown = SettleError::Gone;
    for topic in control.topics().iter().take(MAX_SEARCHED_TOPICS) {
        let settled = control.settle_ids(topic, vec![id.clone()], op.clone());
        match settled.await.pop() {
            Some(Err(error @ SettleError::UnknownId(_))) => unknown = error,
            Some(result) => return result,
            None => {}
        }
    }
    Err(unknown)
}
