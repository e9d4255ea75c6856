//! The running owners of groups: started on demand, and removed when they are idle.

use super::command::{Command, Reply};
use super::counts::GroupCounts;
use super::owner::Owner;
use super::status::SharedStatus;
use super::subscriber::{Ended, Subscriber};
use crate::core::Core;
use crate::error::{GroupError, TakenOver};
use crate::pattern::Pattern;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle};

/// How many commands may wait for one owner.
const COMMAND_QUEUE: usize = 64;
/// How often a command is given to the next owner when one ends under it.
const MAX_TRIES: usize = 1_000;
/// How many groups' counters are kept while they have no owner.
const MAX_COUNTED_GROUPS: usize = 16_384;

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

/// What groups have done.
pub(crate) type Counts = HashMap<GroupName, GroupCounts>;

#[derive(Default)]
struct RegistryState {
    /// Ordered by name, so that those of a topic are adjacent.
    owners: BTreeMap<GroupName, RunningOwner>,
    /// The counters of groups that have no owner at the moment.
    counts: Counts,
    /// Subscriptions that wait for new topics, with the tasks that look for them.
    followers: Vec<(Weak<Subscriber>, Followed, AbortHandle)>,
    closed: bool,
}

/// The group and the patterns that a subscription follows.
pub(crate) type Followed = (Arc<str>, Vec<Pattern>);

struct RunningOwner {
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
    status: Arc<SharedStatus>,
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
            let commands = self.owner(name)?;
            let (reply, answer) = oneshot::channel();
            // An owner that retires meanwhile lets go of what it has not begun; the next one takes it.
            if commands.send(command(reply)).await.is_ok()
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

    /// A way to talk to a group's owner that does not keep it running.
    pub(crate) fn command_sender(&self, name: &GroupName) -> Option<mpsc::WeakSender<Command>> {
        let state = self.lock();
        state
            .owners
            .get(name)
            .map(|running| running.commands.downgrade())
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
        self.lock().counts.get(name).copied().unwrap_or_default()
    }

    /// What the owners last told of their groups, and the counts of groups that have none.
    pub(crate) fn statuses(&self) -> (Vec<(GroupName, Arc<SharedStatus>)>, Counts) {
        let state = self.lock();
        let running_in = state.owners.iter();
        let running_in = running_in.map(|(name, running)| (name.clone(), running.status.clone()));
        (running_in.collect(), state.counts.clone())
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
    pub(crate) fn retire(
        &self,
        name: &GroupName,
        counts: GroupCounts,
        commands: &mut mpsc::Receiver<Command>,
    ) -> bool {
        let mut state = self.lock();
        if !commands.is_empty() {
            return false;
        }
        commands.close();
        state.owners.remove(name);
        state.keep_counts(name, counts);
        true
    }

    /// Takes an owner off the list that cannot go on.
    pub(crate) fn remove(
        &self,
        name: &GroupName,
        counts: GroupCounts,
        commands: &mut mpsc::Receiver<Command>,
    ) {
        let mut state = self.lock();
        commands.close();
        state.owners.remove(name);
        state.keep_counts(name, counts);
    }

    fn owner(&self, name: &GroupName) -> Result<mpsc::Sender<Command>, GroupError> {
        let mut state = self.lock();
        if state.closed {
            return Err(GroupError::Closed);
        }
        if let Some(running) = state.owners.get(name) {
            return Ok(running.commands.clone());
        }
        let (commands, receiver) = mpsc::channel(COMMAND_QUEUE);
        let counts = state.counts.remove(name).unwrap_or_default();
        let status = Arc::<SharedStatus>::default();
        let owner = Owner::new(
            self.core.clone(),
            self.this.clone(),
            name.clone(),
            receiver,
            counts,
            status.clone(),
        );
        let task = self.runtime.spawn(owner.run());
        let running = RunningOwner {
            commands: commands.clone(),
            task,
            status,
        };
        state.owners.insert(name.clone(), running);
        Ok(commands)
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn keep_counts(&mut self, name: &GroupName, counts: GroupCounts) {
        if self.counts.len() < MAX_COUNTED_GROUPS && !name.ephemeral {
            self.counts.insert(name.clone(), counts);
        }
    }
}
