//! Settles events with the owners of their groups: of one topic mostly, of several where a subscription fans in.

use prombus::error::SettleError;
use prombus::{SettleFuture as BusSettleFuture, SubscriptionControl};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

/// The most topics of a subscription that are searched for an event of which only the id is known.
const MAX_SEARCHED_TOPICS: usize = 1_024;

/// How events are settled.
#[derive(Debug, Clone)]
pub(super) enum SettleOp {
    Ack,
    Nack {
        reason: String,
        delay_ms: Option<u64>,
    },
    Extend {
        extend_ms: Option<u64>,
    },
}

/// Resolves to one result for each event.
pub(super) type SettleFuture = Pin<Box<dyn BusSettleFuture>>;

/// Settles events of one topic.
pub(super) fn settle(
    control: &SubscriptionControl,
    topic: &str,
    ids: Vec<String>,
    op: &SettleOp,
) -> SettleFuture {
    let texts = || ids.iter().map(String::as_str).collect::<Vec<_>>();
    match op {
        SettleOp::Ack => Box::pin(control.ack_owned_ids(topic, ids)),
        SettleOp::Nack { reason, delay_ms } => {
            Box::pin(control.nack_ids(topic, &texts(), reason, *delay_ms))
        }
        SettleOp::Extend { extend_ms } => Box::pin(control.extend_ids(topic, &texts(), *extend_ms)),
    }
}

/// Settles events of several topics, each with its topic where that is known.
pub(super) fn settle_by_topic(
    control: SubscriptionControl,
    events: Vec<(Option<Arc<str>>, String)>,
    op: SettleOp,
) -> SettleFuture {
    Box::pin(async move {
        let mut results = vec![Ok(()); events.len()];
        let mut by_topic: BTreeMap<Arc<str>, Vec<(usize, String)>> = BTreeMap::new();
        let mut unknown = Vec::new();
        for (at, (topic, id)) in events.into_iter().enumerate() {
            match topic {
                Some(topic) => by_topic.entry(topic).or_default().push((at, id)),
                None => unknown.push((at, id)),
            }
        }
        for (topic, events) in by_topic {
            let (places, ids): (Vec<_>, Vec<_>) = events.into_iter().unzip();
            let answers = settle(&control, &topic, ids, &op).await;
            for (at, answer) in places.into_iter().zip(answers) {
                results[at] = answer;
            }
        }
        for (at, id) in unknown {
            results[at] = search(&control, id, &op).await;
        }
        results
    })
}

/// Tries one topic after the other, until one holds the event.
async fn search(
    control: &SubscriptionControl,
    id: String,
    op: &SettleOp,
) -> Result<(), SettleError> {
    let mut unknown = SettleError::Gone;
    for topic in control.topics().iter().take(MAX_SEARCHED_TOPICS) {
        let answer = settle(control, topic, vec![id.clone()], op).await.pop();
        match answer {
            Some(Err(error @ SettleError::UnknownId(_))) => unknown = error,
            Some(answer) => return answer,
            None => {}
        }
    }
    Err(unknown)
}
