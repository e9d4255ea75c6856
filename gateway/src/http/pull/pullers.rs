//! The groups that are pulled. One whose leases have all run out and that nobody pulls is let go.

use super::puller::{Puller, Using};
use crate::denied::Denied;
use crate::gateway::Gateway;
use prombus::{StartAt, SubscribeOptions};
use prombus_api::Code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// The most groups that are pulled at a time.
const MAX_PULLERS: usize = 4_096;
/// How often those that nobody needs are looked for.
const SWEEP_MS: u64 = 1_000;
/// How explanations and histories name those who pull.
const MEMBER: &str = "http-pull";

/// All of them, by topic and group.
#[derive(Default)]
pub(crate) struct Pullers {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    by_name: HashMap<(String, String), Arc<Puller>>,
    /// Whether a task looks for idle ones. It ends when there are none.
    is_swept: bool,
}

impl Pullers {
    /// The one of a group, which is made where there is none.
    pub(super) async fn join(
        &self,
        gateway: &Gateway,
        topic: &str,
        group: &str,
        start: StartAt,
        ack_timeout_ms: Option<u64>,
    ) -> Result<Using, Denied> {
        let options = SubscribeOptions {
            from: start,
            // It is told for each pull how many it may have.
            max_in_flight: 1,
            batch_size: super::MAX_EVENTS,
            ack_timeout_ms,
            member: Some(MEMBER.to_owned()),
            ..SubscribeOptions::default()
        };
        if let Some(puller) = self.present(topic, group) {
            puller.set_ack_timeout(ack_timeout_ms);
            return Ok(puller);
        }
        let subscription = gateway.bus.subscribe(topic, group, options).await?;
        let puller = Puller::new(gateway, topic, subscription, ack_timeout_ms);
        self.add(topic, group, puller)
    }

    /// The one of a group that exists, for somebody who settles what was pulled before.
    pub(in crate::http) async fn of_existing(
        &self,
        gateway: &Gateway,
        topic: &str,
        group: &str,
    ) -> Result<Using, Denied> {
        if let Some(puller) = self.present(topic, group) {
            return Ok(puller);
        }
        gateway.bus.group(topic, group).await?;
        self.join(gateway, topic, group, StartAt::Latest, None)
            .await
    }

    fn present(&self, topic: &str, group: &str) -> Option<Using> {
        let name = (topic.to_owned(), group.to_owned());
        let mut shared = lock(&self.shared);
        if shared.by_name.get(&name)?.is_ended() {
            shared.by_name.remove(&name);
            return None;
        }
        shared.by_name.get(&name).cloned().map(Using::new)
    }

    /// Adds one, unless another came first.
    fn add(&self, topic: &str, group: &str, puller: Puller) -> Result<Using, Denied> {
        let mut shared = lock(&self.shared);
        if shared.by_name.len() >= MAX_PULLERS {
            return Err(Denied {
                retry_after_ms: Some(SWEEP_MS),
                ..Denied::new(Code::RateLimited, "too many groups are pulled at a time")
            });
        }
        let name = (topic.to_owned(), group.to_owned());
        let puller = shared
            .by_name
            .entry(name)
            .or_insert_with(|| Arc::new(puller));
        let puller = Using::new(puller.clone());
        if !std::mem::replace(&mut shared.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.shared)));
        }
        Ok(puller)
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
            .retain(|_, puller| !puller.is_ended() && !puller.is_idle());
        if shared.by_name.is_empty() {
            shared.is_swept = false;
            return;
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
