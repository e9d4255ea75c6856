//! The consumers of pulled groups. One without pulls and leases is dropped.

use super::consumer::{ConsumerGuard, PullConsumer};
use crate::api_error::ApiError;
use crate::gateway::Gateway;
use prombus::LockExt;
use prombus::{StartAt, SubscribeExtras, SubscribeOptions};
use prombus_api::Code;
use prombus_api::frames::ErrorDetails;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

/// The most groups that are pulled at a time.
const MAX_PULL_CONSUMERS: usize = 4_096;
/// How often idle consumers are swept.
const SWEEP_MS: u64 = 1_000;
/// How explanations and histories name those who pull.
const MEMBER: &str = "http-pull";

/// All of them, by topic and group.
#[derive(Default)]
pub(crate) struct PullConsumers {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    by_name: HashMap<(String, String), Arc<PullConsumer>>,
    /// Whether a task looks for idle ones. It ends when there are none.
    is_swept: bool,
}

impl PullConsumers {
    /// The one of a group, which is made where there is none.
    pub(super) async fn join(
        &self,
        gateway: &Gateway,
        topic: &str,
        group: &str,
        start: StartAt,
        ack_timeout_ms: Option<u64>,
    ) -> Result<ConsumerGuard, ApiError> {
        let options = SubscribeOptions {
            from: start,
            // Each pull sets how many it wants.
            max_in_flight: 1,
            batch_size: super::MAX_EVENTS,
            ack_timeout_ms,
            extras: SubscribeExtras::member(MEMBER),
            ..SubscribeOptions::default()
        };
        if let Some(consumer) = self.present(topic, group) {
            consumer.set_ack_timeout(ack_timeout_ms);
            return Ok(consumer);
        }
        let subscription = gateway.bus.subscribe(topic, group, options).await?;
        let consumer = PullConsumer::new(gateway, topic, subscription, ack_timeout_ms);
        self.add(topic, group, consumer)
    }

    /// The consumer of an existing group, to settle events that were pulled before.
    pub(in crate::http) async fn of_existing(
        &self,
        gateway: &Gateway,
        topic: &str,
        group: &str,
    ) -> Result<ConsumerGuard, ApiError> {
        if let Some(consumer) = self.present(topic, group) {
            return Ok(consumer);
        }
        gateway.bus.group(topic, group).await?;
        self.join(gateway, topic, group, StartAt::Latest, None)
            .await
    }

    fn present(&self, topic: &str, group: &str) -> Option<ConsumerGuard> {
        let name = (topic.to_owned(), group.to_owned());
        let mut shared = lock(&self.shared);
        if shared.by_name.get(&name)?.is_ended() {
            shared.by_name.remove(&name);
            return None;
        }
        shared.by_name.get(&name).cloned().map(ConsumerGuard::new)
    }

    /// Adds one, unless another came first.
    fn add(
        &self,
        topic: &str,
        group: &str,
        consumer: PullConsumer,
    ) -> Result<ConsumerGuard, ApiError> {
        let mut shared = lock(&self.shared);
        if shared.by_name.len() >= MAX_PULL_CONSUMERS {
            return Err(ApiError {
                details: ErrorDetails {
                    retry_after_ms: Some(SWEEP_MS),
                    ..ErrorDetails::default()
                },
                ..ApiError::new(Code::RateLimited, "too many groups are being pulled")
            });
        }
        let name = (topic.to_owned(), group.to_owned());
        let consumer = shared
            .by_name
            .entry(name)
            .or_insert_with(|| Arc::new(consumer));
        let consumer = ConsumerGuard::new(consumer.clone());
        if !std::mem::replace(&mut shared.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.shared)));
        }
        Ok(consumer)
    }
}

/// Lets idle ones go, until there are none or the gateway is gone.
async fn sweep(shared: Weak<Mutex<Shared>>) {
    loop {
        tokio::time::sleep(Duration::from_millis(SWEEP_MS)).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let mut shared = lock(&shared);
        shared
            .by_name
            .retain(|_, consumer| !consumer.is_ended() && !consumer.is_idle());
        if shared.by_name.is_empty() {
            shared.is_swept = false;
            return;
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.guard()
}
