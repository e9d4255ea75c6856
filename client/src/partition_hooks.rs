//! Handlers whose consumer has hooks for partitions that come and go.

use crate::bus::Consumer;
use crate::subscription::{Delivery, Next, Subscription};
use prombus_interface::handle;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What a consumer does when partitions come and go.
pub trait PartitionHooks: Send + Sync + 'static {
    /// Partitions come to this consumer, and their events after this: the place to load what is kept for them.
    fn on_assigned(&self, topic: &str, partitions: &[u32]) -> impl Future<Output = ()> + Send;

    /// Partitions go to another consumer after this: the place to store what is kept for them. After a broken connection
    /// others may have them already. Also called for all of them when the consumer stops, before it unsubscribes.
    fn on_revoked(&self, topic: &str, partitions: &[u32]) -> impl Future<Output = ()> + Send;
}

/// Starts one task that hands deliveries to up to `concurrency` handlers, and calls the hooks in between.
pub(crate) fn consume_partitions<H, F, E, P>(
    subscription: Subscription,
    concurrency: usize,
    manual_ack: bool,
    hooks: P,
    handler: H,
) -> Consumer
where
    H: Fn(Delivery) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + 'static,
    P: PartitionHooks,
{
    Consumer::with_worker(subscription, move |served, stopped| async move {
        let mut running = JoinSet::new();
        let mut held: BTreeMap<Arc<str>, BTreeSet<u32>> = BTreeMap::new();
        while let Some(next) = next_in_order(&served, stopped.clone()).await {
            match next {
                Next::Delivery(delivery) => {
                    while running.len() >= concurrency {
                        running.join_next().await;
                    }
                    running.spawn(handle(delivery, &handler, manual_ack));
                }
                Next::Assignment(assignment) => {
                    let topic = &assignment.topic;
                    let known = held.entry(topic.clone()).or_default();
                    known.retain(|one| !assignment.revoked.contains(one));
                    known.extend(&assignment.assigned);
                    if !assignment.revoked.is_empty() {
                        // What is under way may be of these partitions.
                        while running.join_next().await.is_some() {}
                        hooks.on_revoked(topic, &assignment.revoked).await;
                        let control = served.control();
                        control.confirm_revoked(topic, &assignment.revoked);
                    }
                    if !assignment.assigned.is_empty() {
                        hooks.on_assigned(topic, &assignment.assigned).await;
                    }
                }
            }
        }
        while running.join_next().await.is_some() {}
        for (topic, partitions) in held.iter().filter(|(_, held)| !held.is_empty()) {
            let partitions: Vec<u32> = partitions.iter().copied().collect();
            hooks.on_revoked(topic, &partitions).await;
        }
    })
}

/// What comes next; `None` when no more will, or when it is to stop.
async fn next_in_order(
    served: &Arc<Subscription>,
    mut stopped: watch::Receiver<bool>,
) -> Option<Next> {
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stopping| *stopping) => None,
        next = served.next_in_order() => next,
    }
}
