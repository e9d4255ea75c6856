//! Memberships whose link broke without a goodbye. Their members may be working on what they hold, so their leases stay until
//! they run out, until the relay is back, or until its process is known to be gone.

use crate::core::Core;
use crate::group::membership::Membership;
use crate::group::ownership::Via;
use crate::group::state::MemberId;
use crate::group::subscriber::Subscriber;
use prombus_store::LockExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How often it is looked whether there is still something to wait for.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How many memberships wait at most; beyond it the leases of further ones are free at once.
const MAX_LINGERING: usize = 16_384;

/// Which member: that of a relay's boot, in one group.
pub(crate) type LingeringKey = (u64, Arc<str>, Arc<str>, MemberId);

/// The memberships that wait for their relay.
#[derive(Default)]
pub(crate) struct Lingering {
    waiting: Mutex<HashMap<LingeringKey, Waiting>>,
}

pub(crate) struct Waiting {
    pub(crate) membership: Membership,
    subscriber: Arc<Subscriber>,
}

impl Lingering {
    /// Keeps a membership for as long as its member may hold something.
    pub(crate) fn keep(
        core: &Arc<Core>,
        via: Via,
        key: LingeringKey,
        (membership, subscriber): (Membership, Arc<Subscriber>),
    ) {
        // What was not sent goes back, and nothing new is leased to it.
        subscriber.set_stalled(true);
        if subscriber.credit.in_flight() == 0 {
            return;
        }
        let waiting = Waiting {
            membership,
            subscriber: subscriber.clone(),
        };
        {
            let mut all = core.lingering.lock();
            if all.len() >= MAX_LINGERING {
                return;
            }
            all.insert(key.clone(), waiting);
        }
        let core = core.clone();
        tokio::spawn(async move {
            let mut closing = core.closing();
            loop {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_INTERVAL) => {}
                    // The owner writes down that they hold something; only then may they be let go of.
                    () = closing.closed() => return,
                }
                let is_gone = match &core.nodes {
                    Some(nodes) => nodes.is_gone(via.node, via.boot).await,
                    None => true,
                };
                let is_over = is_gone || subscriber.credit.in_flight() == 0;
                if is_over || !core.lingering.is_same(&key, &subscriber) {
                    break;
                }
            }
            if core.lingering.is_same(&key, &subscriber) {
                core.lingering.take(&key);
            }
        });
    }

    /// Takes a membership out, for its relay that is back or to let go of it.
    pub(crate) fn take(&self, key: &LingeringKey) -> Option<Waiting> {
        self.lock().remove(key)
    }

    /// Lets go of the members of a relay's boot in one group that are not among those that are left.
    pub(crate) fn release_others(
        &self,
        boot: u64,
        (topic, group): (&Arc<str>, &Arc<str>),
        left: impl Fn(MemberId) -> bool,
    ) {
        let mut released = Vec::new();
        let mut all = self.lock();
        let others: Vec<LingeringKey> = all
            .keys()
            .filter(|key| (key.0, &key.1, &key.2) == (boot, topic, group) && !left(key.3))
            .cloned()
            .collect();
        for key in others {
            released.extend(all.remove(&key));
        }
        drop(all);
        // Memberships are let go of outside of the lock.
        drop(released);
    }

    fn is_same(&self, key: &LingeringKey, subscriber: &Arc<Subscriber>) -> bool {
        let all = self.lock();
        all.get(key)
            .is_some_and(|one| Arc::ptr_eq(&one.subscriber, subscriber))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LingeringKey, Waiting>> {
        self.waiting.guard()
    }
}
