//! Asking the owners of groups to settle events: of one topic mostly, of several where a subscription fans in.

use prombus::error::SettleError;
use prombus::{SettleAnswer, SubscriptionControl};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

/// The most topics of a subscription that are searched for an event of which only the id is known.
const MAX_SEARCHED_TOPICS: usize = 1_024;

/// What is to become of events.
#[derive(Debug, Clone)]
pub(super) enum What {
    Ack,
    Nack {
        reason: String,
        delay_ms: Option<u64>,
    },
    Extend {
        extend_ms: Option<u64>,
    },
}

/// The results, once the owners have answered.
pub(super) type Asked = Pin<Box<dyn SettleAnswer>>;

/// Asks about events of one topic.
pub(super) fn ask(
    control: &SubscriptionControl,
    topic: &str,
    ids: Vec<String>,
    what: &What,
) -> Asked {
    let texts = || ids.iter().map(String::as_str).collect::<Vec<_>>();
    match what {
        What::Ack => Box::pin(control.ack_owned_ids(topic, ids)),
        What::Nack { reason, delay_ms } => {
            Box::pin(control.nack_ids(topic, &texts(), reason, *delay_ms))
        }
        What::Extend { extend_ms } => Box::pin(control.extend_ids(topic, &texts(), *extend_ms)),
    }
}

/// Asks about events of several topics, each with its topic where that is known.
pub(super) fn ask_scattered(
    control: SubscriptionControl,
    events: Vec<(Option<Arc<str>>, String)>,
    what: What,
) -> Asked {
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
            let answers = ask(&control, &topic, ids, &what).await;
            for (at, answer) in places.into_iter().zip(answers) {
                results[at] = answer;
            }
        }
        for (at, id) in unknown {
            results[at] = search(&control, id, &what).await;
        }
        results
    })
}

/// Asks one topic after the other, until one holds the event.
async fn search(control: &SubscriptionControl, id: String, what: &What) -> Result<(), SettleError> {
    let mut unknown = SettleError::Gone;
    for topic in control.topics().iter().take(MAX_SEARCHED_TOPICS) {
        let answer = ask(control, topic, vec![id.clone()], what).await.pop();
        match answer {
            Some(Err(error @ SettleError::UnknownId(_))) => unknown = error,
            Some(answer) => return answer,
            None => {}
        }
    }
    Err(unknown)
}
