//! Groups whose record the store did not take: what their members acknowledged is known to this process only. As long as
//! there is one, acknowledgements fail, the server is not ready, and a stop is not clean.

use super::registry::GroupName;
use prombus_store::CommitError;
use prombus_store::LockExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// How writing groups down is going.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnwrittenGroups {
    /// How many writes have failed since the bus was opened.
    pub failures: u64,
    /// How many groups the store does not have as they are.
    pub groups: usize,
    /// The last failure, in words, while there are such groups.
    pub latest: Option<Arc<str>>,
}

/// The groups of a bus that are not written. There are no more of them than owners.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    groups: Mutex<HashMap<GroupName, Arc<str>>>,
    /// How many there are, so that a write that succeeds need not take the lock.
    count: AtomicUsize,
    status: watch::Sender<UnwrittenGroups>,
}

impl Unwritten {
    /// Takes in that a group's record was refused; returns why, in words.
    pub(crate) fn failed(&self, name: &GroupName, error: &CommitError) -> Arc<str> {
        let cause: Arc<str> = format!(
            "the record of group {} of topic {} was not written: {error}",
            name.group, name.topic
        )
        .into();
        self.change(|groups, status| {
            groups.insert(name.clone(), cause.clone());
            status.failures += 1;
            status.latest = Some(cause.clone());
        });
        cause
    }

    /// Takes in that a group's record is written, or that the group is not this bus's any more.
    pub(crate) fn settled(&self, name: &GroupName) {
        if self.count.load(Ordering::Acquire) > 0 {
            self.change(|groups, status| {
                groups.remove(name);
                if groups.is_empty() {
                    status.latest = None;
                }
            });
        }
    }

    pub(crate) fn status(&self) -> UnwrittenGroups {
        self.status.borrow().clone()
    }

    /// A way to learn of changes.
    pub(crate) fn watch(&self) -> watch::Receiver<UnwrittenGroups> {
        self.status.subscribe()
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<GroupName, Arc<str>>, &mut UnwrittenGroups)) {
        let mut groups = self.groups.guard();
        self.status.send_modify(|status| {
            change(&mut groups, status);
            status.groups = groups.len();
        });
        self.count.store(groups.len(), Ordering::Release);
    }
}
