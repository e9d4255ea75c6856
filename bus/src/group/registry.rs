//! The running owners of groups: started on demand, and removed when they are idle.

use super::command::{Command, Reply};
use super::directory::{Directory, StoredGroup};
use super::inbox::Inbox;
use super::owner::Owner;
use super::packed_status::PackedStatus;
use super::status::{GroupStatus, SharedStatus};
use super::subscriber::{Ended, Subscriber};
use crate::core::Core;
use crate::error::{GroupError, TakenOver};
use prombus_interface::{GroupCounts, Pattern};
use prombus_store::LockExt;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

/// How often a command is given to the next owner when one ends under it.
const MAX_TRIES: usize = 1_000;

/// A group's full name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupName {
    pub(crate) topic: Arc<str>,
    pub(crate) group: Arc<str>,
    /// Nothing of it is stored.
    pub(crate) ephemeral: bool,
}

/// All owners of one bus.
pub(crate) struct Registry {
    core: Arc<Core>,
    runtime: Handle,
    /// For the owners, who must not keep the bus open.
    this: Weak<Registry>,
    state: Mutex<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    /// Ordered by name, so that those of a topic are adjacent.
    owners: BTreeMap<GroupName, RunningOwner>,
    /// The groups that are stored.
    directory: Directory,
    /// Subscriptions that wait for new topics, with the tasks that look for them.
    followers: Vec<(Weak<Subscriber>, Followed, AbortHandle)>,
    closed: bool,
}

/// The group and the patterns that a subscription follows.
pub(crate) type Followed = (Arc<str>, Vec<Pattern>);

struct RunningOwner {
    inbox: ListedInbox,
    task: JoinHandle<()>,
    status: Arc<SharedStatus>,
}

/// The inbox of an owner that is in the registry. Letting go of it makes the owner stop, so that a subscription, which
/// has the inbox too, does not keep a bus open that was dropped.
struct ListedInbox(Arc<Inbox>);

impl Drop for ListedInbox {
    fn drop(&mut self) {
        self.0.delist();
    }
}

impl Registry {
    pub(crate) fn new(core: Arc<Core>, runtime: Handle) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            core,
            runtime,
            this: this.clone(),
            state: Mutex::default(),
        })
    }

    /// Gives a command to the group's owner, which is started where there is none, and waits for the answer.
    pub(crate) async fn call<T>(
        &self,
        name: &GroupName,
        command: impl Fn(Reply<T>) -> Command,
    ) -> Result<T, GroupError> {
        for _ in 0..MAX_TRIES {
            let inbox = self.owner(name)?;
            let (reply, answer) = oneshot::channel();
            // An owner that retires meanwhile drops what it has not begun; the next one takes it.
            if inbox.push_command(Box::new(command(reply))).is_ok()
                && let Ok(answer) = answer.await
            {
                return answer;
            }
        }
        Err(TakenOver {
            topic: name.topic.clone(),
            group: name.group.clone(),
        }
        .into())
    }

    /// Gives a command to the group's owner, which is started where there is none. One that no owner takes is dropped, and
    /// with it its reply.
    pub(crate) fn send(&self, name: &GroupName, command: Command) {
        let mut command = Box::new(command);
        for _ in 0..MAX_TRIES {
            let Ok(inbox) = self.owner(name) else {
                return;
            };
            match inbox.push_command(command) {
                Ok(()) => return,
                // The owner has retired meanwhile; the next one takes it.
                Err(returned) => command = returned,
            }
        }
    }

    /// How many groups are served now.
    pub(crate) fn running(&self) -> usize {
        self.lock().owners.len()
    }

    /// The groups of a topic that are served now.
    pub(crate) fn running_in(&self, topic: &str) -> Vec<GroupName> {
        let first = GroupName {
            topic: topic.into(),
            group: "".into(),
            ephemeral: false,
        };
        let state = self.lock();
        let from_first = state.owners.range(first..).map(|(name, _)| name);
        from_first
            .take_while(|name| &*name.topic == topic)
            .cloned()
            .collect()
    }

    /// Whether a group is served now.
    pub(crate) fn is_running(&self, name: &GroupName) -> bool {
        self.lock().owners.contains_key(name)
    }

    /// What a group without an owner has done.
    pub(crate) fn counts(&self, name: &GroupName) -> GroupCounts {
        self.lock().directory.counts(name)
    }

    /// The next groups in the order of their names, as their owners last reported or as they are stored; none after the
    /// last one. So looking at all of them holds the lock for a few at a time.
    pub(crate) fn status_page(
        &self,
        after: Option<&GroupName>,
        limit: usize,
    ) -> Vec<(GroupName, GroupStatus)> {
        let state = self.lock();
        let bound = after.map_or(Bound::Unbounded, Bound::Excluded);
        let running = state.owners.range((bound, Bound::Unbounded));
        let running = running.filter_map(|(name, running)| Some((name, running.status.get()?)));
        let mut page: BTreeMap<&GroupName, GroupStatus> =
            state.directory.page(after, limit).collect();
        page.extend(running.take(limit));
        let page = page.into_iter().take(limit);
        page.map(|(name, status)| (name.clone(), status)).collect()
    }

    /// Whether all stored groups are known.
    pub(crate) fn is_directory_complete(&self) -> bool {
        let now_ms = self.core.monotonic_ms();
        self.lock().directory.is_complete(now_ms)
    }

    /// The records are about to be listed.
    pub(crate) fn begin_listing(&self) {
        self.lock().directory.begin_listing();
    }

    /// What is known of a group that is stored, and its name as it is kept.
    pub(crate) fn stored_group(&self, name: &GroupName) -> Option<(GroupName, StoredGroup)> {
        self.lock().directory.get_named(name)
    }

    /// All records were listed.
    pub(crate) fn listed(&self, groups: BTreeMap<GroupName, PackedStatus>) {
        let now_ms = self.core.monotonic_ms();
        self.lock().directory.listed(groups, now_ms);
    }

    /// Another bus may have changed a record.
    pub(crate) fn outdate_directory(&self) {
        self.lock().directory.outdate();
    }

    /// A topic was deleted, and the records of its groups with it.
    pub(crate) fn removed_topic(&self, topic: &str) {
        self.lock().directory.removed_topic(topic);
    }

    /// Makes every owner of a topic that is gone stop without writing anything more.
    pub(crate) async fn abandon_topic(&self, topic: &str, reason: Ended) {
        for name in self.running_in(topic) {
            // One that has stopped by itself is as good.
            let _ = self
                .call(&name, |reply| Command::Abandon(reason, reply))
                .await;
        }
    }

    /// Stops all owners, waits until they have written what they have, and starts none any more.
    pub(crate) async fn close(&self) {
        let owners = {
            let mut state = self.lock();
            state.closed = true;
            state.end_followers();
            std::mem::take(&mut state.owners)
        };
        let mut owners: Vec<(GroupName, RunningOwner)> = owners.into_iter().collect();
        owners.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut tasks = Vec::with_capacity(owners.len());
        for (_, running) in owners {
            tasks.push(running.task);
        }
        for task in tasks {
            // A task that panicked has nothing left to write.
            let _ = task.await;
        }
    }

    /// Starts the task that looks for new topics for a subscription. It ends with the bus at the latest.
    pub(crate) fn follow(
        &self,
        subscriber: &Arc<Subscriber>,
        followed: Followed,
        following: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let mut state = self.lock();
        state.followers.retain(|(.., task)| !task.is_finished());
        let task = self.runtime.spawn(following).abort_handle();
        state
            .followers
            .push((Arc::downgrade(subscriber), followed, task.clone()));
        if state.closed {
            state.end_followers();
        }
        task
    }

    /// Ends the subscriptions that follow a pattern in a group that was removed.
    pub(crate) fn end_followers_of(&self, pattern: &Pattern, group: &str) {
        let mut state = self.lock();
        state.followers.retain(|(subscriber, followed, task)| {
            let (followed_group, patterns) = followed;
            if **followed_group != *group || !patterns.contains(pattern) {
                return true;
            }
            task.abort();
            if let Some(subscriber) = subscriber.upgrade() {
                subscriber.end(Ended::GroupRemoved);
            }
            false
        });
    }

    /// Takes an owner off the list, unless a command waits for it.
    pub(crate) fn retire(&self, name: &GroupName, inbox: &Inbox) -> bool {
        let mut state = self.lock();
        if !inbox.delist_if_idle() {
            return false;
        }
        state.remove(name, true);
        drop(state);
        self.forget_shadow(name);
        true
    }

    /// Takes an owner off the list that cannot go on; the group may still be stored.
    pub(crate) fn remove(&self, name: &GroupName, is_stored: bool, inbox: &Inbox) {
        let mut state = self.lock();
        inbox.delist();
        state.remove(name, is_stored);
        drop(state);
        self.forget_shadow(name);
    }

    /// A shadow group is gone with its owner.
    fn forget_shadow(&self, name: &GroupName) {
        if name.ephemeral {
            self.core.shadows.remove(&name.group);
        }
    }

    /// Starts a task beside the owners. It ends by itself when the bus is closed.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.runtime.spawn(task).abort_handle()
    }

    fn owner(&self, name: &GroupName) -> Result<Arc<Inbox>, GroupError> {
        let mut state = self.lock();
        if state.closed {
            return Err(GroupError::Closed);
        }
        if let Some(running) = state.owners.get(name) {
            return Ok(running.inbox.0.clone());
        }
        let inbox = Arc::new(Inbox::new(self.core.options.group_bytes));
        let counts = state.directory.counts(name);
        let status = Arc::<SharedStatus>::default();
        let owner = Owner::new(
            self.core.clone(),
            self.this.clone(),
            name.clone(),
            inbox.clone(),
            counts,
            status.clone(),
        );
        let task = self.runtime.spawn(owner.run());
        let running = RunningOwner {
            inbox: ListedInbox(inbox.clone()),
            task,
            status,
        };
        state.owners.insert(name.clone(), running);
        Ok(inbox)
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.guard()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.lock().end_followers();
    }
}

impl RegistryState {
    fn end_followers(&mut self) {
        for (subscriber, _, task) in self.followers.drain(..) {
            task.abort();
            if let Some(subscriber) = subscriber.upgrade() {
                subscriber.end(Ended::BusClosed);
            }
        }
    }

    fn remove(&mut self, name: &GroupName, is_stored: bool) {
        let removed = self.owners.remove(name);
        if name.ephemeral {
            return;
        }
        let status = removed.and_then(|running| running.status.get());
        match status.filter(|_| is_stored) {
            Some(status) => self.directory.stored(name, status),
            // There is no such group, or it could not be read.
            None => self.directory.removed(name),
        }
    }
}
