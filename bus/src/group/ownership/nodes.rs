//! This node among the others: its beats, and what it sees of theirs.

use super::absent::{Absent, FORGOTTEN_AFTER_MS};
use super::record::{NODE_PREFIX, NodeRecord, OwnerRecord, node_key, parse_node_key};
use super::validity::Validity;
use super::watch::{Standing, Watch};
use super::{BEAT_MS, IDLE_BEAT_MS};
use crate::group::relay::{LINK_TIMEOUT, NodeDialer, NodeLink};
use prombus_store::LockExt;
use prombus_store::{Batch, Change, Clock, Expect, Keyed, NodeBoot, ReadError, Store};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// Where the secret is stored that the nodes know each other by.
const SECRET_KEY: &str = "cluster/secret";

/// Finds out whether a node's process has certainly ended, with all of its connections.
pub trait NodeProbe: Send + Sync + 'static {
    /// Names the place that the probe can see, such as a machine: only nodes of the same place are asked about. `None`
    /// where there is no such place.
    fn place(&self) -> Option<String>;

    /// Whether the process with this boot has ended; `false` wherever that is not certain.
    fn is_gone(&self, boot: u64) -> Pin<Box<dyn Future<Output = bool> + Send>>;
}

/// A node that shares the store with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its number, in hexadecimal digits.
    pub node: String,
    /// Where its clients reach it, where it has announced that.
    pub url: Option<String>,
    /// Whether it is the one that was asked.
    pub is_asked: bool,
    /// When it sent its last beat that arrived here, by its own clock, in epoch milliseconds.
    pub beat_ms: u64,
    /// How many groups it served then.
    pub groups: u64,
    /// How many groups it relayed its members of to other nodes then.
    pub relayed_groups: u64,
    /// The last commit of the shared log that was in its copy then.
    pub applied: u64,
    /// How many commits that it had heard of were not in its copy yet.
    pub lag: u64,
}

/// This node among those that share the store.
pub(crate) struct Nodes {
    me: NodeBoot,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    validity: Mutex<Validity>,
    /// Counts acknowledged beats, for those who wait for one.
    beats: watch::Sender<u64>,
    next_beat: AtomicU64,
    /// How many owners there are.
    holders: AtomicUsize,
    /// Wakes the task when there is an owner again, or something new to tell.
    wanted: Arc<Notify>,
    watch: tokio::sync::Mutex<Watch>,
    /// Which nodes are to be forgotten.
    absent: Mutex<Absent>,
    /// How many groups have members here and are served elsewhere.
    relayed: AtomicUsize,
    /// Where this node is reached, and who tells whether others are gone.
    introduction: Mutex<Introduction>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default, Clone)]
struct Introduction {
    url: Option<String>,
    probe: Option<Arc<dyn NodeProbe>>,
    /// What opens links to other nodes, and a secret for a store that has none.
    links: Option<(Arc<dyn NodeDialer>, String)>,
}

/// A group whose members here are served elsewhere.
pub(crate) struct Relaying(Arc<Nodes>);

impl Drop for Relaying {
    fn drop(&mut self) {
        self.0.relayed.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An owner, for as long as which this node beats.
pub(crate) struct Hold(Arc<Nodes>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Nodes {
    /// This node, where the store is shared. It beats often only while it owns groups.
    pub(crate) fn start(
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        runtime: &Handle,
    ) -> Option<Arc<Self>> {
        let me = store.shared_as()?;
        let nodes = Arc::new(Self {
            me,
            store: store.clone(),
            clock: clock.clone(),
            validity: Mutex::default(),
            beats: watch::Sender::new(0),
            next_beat: AtomicU64::new(1),
            holders: AtomicUsize::new(0),
            wanted: Arc::new(Notify::new()),
            watch: tokio::sync::Mutex::default(),
            absent: Mutex::default(),
            relayed: AtomicUsize::new(0),
            introduction: Mutex::default(),
            task: Mutex::default(),
        });
        let task = runtime.spawn(beat(Arc::downgrade(&nodes), nodes.wanted.clone()));
        *lock(&nodes.task) = Some(task);
        Some(nodes)
    }

    pub(crate) fn me(&self) -> NodeBoot {
        self.me
    }

    /// Says where this node is reached, and who tells whether another one is gone.
    pub(crate) fn introduce(&self, url: String, probe: Arc<dyn NodeProbe>) {
        {
            let mut introduction = lock(&self.introduction);
            introduction.url = Some(url);
            introduction.probe = Some(probe);
        }
        self.wanted.notify_one();
    }

    /// All nodes that have beaten and did not leave, by their numbers. What others have committed since may be missing.
    pub(crate) async fn list(&self) -> Result<Vec<NodeInfo>, ReadError> {
        let records = self.read_nodes().await?;
        let copy = self.store.status().copy.unwrap_or_default();
        let info = |(node, record): (u64, NodeRecord)| {
            let is_asked = node == self.me.node;
            let (applied, lag) = if is_asked {
                (copy.applied, copy.lag())
            } else {
                (record.applied, record.lag)
            };
            NodeInfo {
                node: format!("{node:016x}"),
                url: record.url,
                is_asked,
                beat_ms: record.sent_ms,
                groups: record.groups,
                relayed_groups: record.relayed_groups,
                applied,
                lag,
            }
        };
        Ok(records.into_iter().map(info).collect())
    }

    /// This node by what people know it by.
    pub(crate) fn describe_me(&self) -> String {
        let url = lock(&self.introduction).url.clone();
        url.unwrap_or_else(|| format!("{:016x}", self.me.node))
    }

    /// Keeps this node beating for an owner.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        if self.holders.fetch_add(1, Ordering::AcqRel) == 0 {
            self.wanted.notify_one();
        }
        Hold(self.clone())
    }

    /// Counts a group as relayed.
    pub(crate) fn count_relayed(self: &Arc<Self>) -> Relaying {
        self.relayed.fetch_add(1, Ordering::AcqRel);
        Relaying(self.clone())
    }

    /// Takes the records of nodes away that were not heard of for long, unless they beat at this moment.
    async fn forget_absent(&self) {
        let now_ms = self.clock.monotonic_ms();
        if !lock(&self.absent).is_due(now_ms) {
            return;
        }
        let Ok(stored) = self.store.list(NODE_PREFIX).await else {
            return;
        };
        let records: Vec<(u64, u64, NodeRecord)> = stored
            .into_iter()
            .filter_map(|(key, keyed)| {
                let record = serde_json::from_slice(&keyed.value).ok()?;
                Some((parse_node_key(&key)?, keyed.version, record))
            })
            .collect();
        let seen = records.iter().map(|(node, _, record)| (*node, record));
        let forgotten = lock(&self.absent).look(seen, now_ms);
        for (node, version, record) in &records {
            if *node == self.me.node || !forgotten.contains(node) {
                continue;
            }
            let mut batch = Batch::new();
            batch.change(Change::Delete {
                key: node_key(*node),
                expect: Expect::Version(*version),
            });
            if self.store.commit(batch).await.is_ok() {
                let url = record.url.as_deref().unwrap_or_default();
                tracing::info!(
                    node = format!("{node:016x}"),
                    url,
                    silent_ms = FORGOTTEN_AFTER_MS,
                    "a node without a beat is forgotten"
                );
            }
        }
    }

    /// The stretch of valid beats that goes on.
    pub(crate) fn stretch(&self) -> Option<u64> {
        lock(&self.validity).stretch(self.clock.monotonic_ms())
    }

    /// Waits until beats are valid.
    pub(crate) async fn valid_stretch(&self) -> u64 {
        let mut beats = self.beats.subscribe();
        loop {
            if let Some(stretch) = self.stretch() {
                return stretch;
            }
            // The sender is in `self`, so it is there.
            let _ = beats.changed().await;
        }
    }

    /// Reads a group's record and sees how the nodes do. What was committed before the call can be read afterwards.
    pub(crate) async fn look(&self, group_key: &str) -> Result<Option<Keyed>, ReadError> {
        let mut watch = self.watch.lock().await;
        let began_ms = self.clock.monotonic_ms();
        let found = self.read_group_then_nodes(group_key).await;
        match found {
            Ok((group, nodes)) => {
                watch.look(nodes, began_ms, self.clock.monotonic_ms());
                Ok(group)
            }
            Err(error) => {
                watch.failed();
                Err(error)
            }
        }
    }

    /// The group comes first: a node beats before it owns anything, so the records of nodes that are read later include
    /// that of the owner, as of this boot or a later one.
    async fn read_group_then_nodes(
        &self,
        group_key: &str,
    ) -> Result<(Option<Keyed>, Vec<(u64, NodeRecord)>), ReadError> {
        self.store.barrier().await?;
        let group = self.store.get(group_key).await?;
        Ok((group, self.read_nodes().await?))
    }

    async fn read_nodes(&self) -> Result<Vec<(u64, NodeRecord)>, ReadError> {
        let nodes = self.store.list(NODE_PREFIX).await?;
        let nodes = nodes.into_iter().filter_map(|(key, keyed)| {
            let record = serde_json::from_slice(&keyed.value).ok()?;
            Some((parse_node_key(&key)?, record))
        });
        Ok(nodes.collect())
    }

    /// How the node of an owner did at the last look.
    pub(crate) async fn standing(&self, owner: &OwnerRecord) -> Standing {
        let watch = self.watch.lock().await;
        watch.standing(owner.node, owner.boot)
    }

    /// A node by what people know it by.
    pub(crate) async fn describe(&self, node: u64) -> String {
        let watch = self.watch.lock().await;
        let url = watch.url(node).map(str::to_owned);
        url.unwrap_or_else(|| format!("{node:016x}"))
    }

    /// Whether the process of a node is known to have ended, so that its members hold nothing.
    pub(crate) async fn is_gone(&self, node: u64, boot: u64) -> bool {
        let Ok(Some(stored)) = self.store.get(&node_key(node)).await else {
            return false;
        };
        let Ok(record) = serde_json::from_slice::<NodeRecord>(&stored.value) else {
            return false;
        };
        if record.boot != boot {
            // It has been started anew since.
            return true;
        }
        let probe = lock(&self.introduction).probe.clone();
        match probe.filter(|probe| record.place.is_some() && probe.place() == record.place) {
            Some(probe) => probe.is_gone(boot).await,
            None => false,
        }
    }

    /// Links this node to others from now on. The secret is the store's where it has none yet.
    pub(crate) fn link(&self, dialer: Arc<dyn NodeDialer>, fresh_secret: String) {
        lock(&self.introduction).links = Some((dialer, fresh_secret));
    }

    /// What links nodes, where anything does.
    pub(crate) fn dialer(&self) -> Option<Arc<dyn NodeDialer>> {
        let introduction = lock(&self.introduction);
        let (dialer, _) = introduction.links.as_ref()?;
        Some(dialer.clone())
    }

    /// A link to the node at a URL, in time; `None` where it cannot be reached.
    pub(crate) async fn dial(&self, url: &str) -> Option<NodeLink> {
        let dialer = self.dialer()?;
        let dialing = async {
            let secret = self.secret().await?;
            dialer.dial(url.to_owned(), secret).await.ok()
        };
        tokio::time::timeout(LINK_TIMEOUT, dialing).await.ok()?
    }

    /// Where a node that has announced it is reached.
    pub(crate) async fn url(&self, node: u64) -> Option<String> {
        let stored = self.store.get(&node_key(node)).await.ok()??;
        let record: NodeRecord = serde_json::from_slice(&stored.value).ok()?;
        record.url
    }

    /// What the nodes on this store know each other by: the first one that needs it writes it down.
    pub(crate) async fn secret(&self) -> Option<String> {
        let links = lock(&self.introduction).links.clone();
        let (_, fresh) = links?;
        for _ in 0..2 {
            if let Some(stored) = self.store.get(SECRET_KEY).await.ok()? {
                return String::from_utf8(stored.value.to_vec()).ok();
            }
            let mut batch = Batch::new();
            batch.change(Change::Put {
                key: SECRET_KEY.into(),
                value: fresh.as_bytes().into(),
                expect: Expect::Absent,
            });
            // Another node may be faster.
            let _ = self.store.commit(batch).await;
        }
        None
    }

    /// Takes this node's record away, when it owns nothing any more.
    pub(crate) async fn leave(&self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
        if self.next_beat.load(Ordering::Relaxed) > 1 {
            let mut batch = Batch::new();
            batch.change(Change::Delete {
                key: node_key(self.me.node),
                expect: Expect::Any,
            });
            // Where it stays, others find it silent.
            let _ = self.store.commit(batch).await;
        }
    }

    async fn send_beat(&self) {
        let Introduction { url, probe, .. } = lock(&self.introduction).clone();
        let copy = self.store.status().copy.unwrap_or_default();
        let record = NodeRecord {
            boot: self.me.boot,
            beat: self.next_beat.fetch_add(1, Ordering::Relaxed),
            sent_ms: self.clock.now_ms(),
            groups: self.holders.load(Ordering::Acquire) as u64,
            relayed_groups: self.relayed.load(Ordering::Acquire) as u64,
            applied: copy.applied,
            lag: copy.lag(),
            url,
            place: probe.and_then(|probe| probe.place()),
        };
        let mut batch = Batch::new();
        batch.change(Change::Put {
            key: node_key(self.me.node),
            value: record.to_bytes(),
            expect: Expect::Any,
        });
        let sent_ms = self.clock.monotonic_ms();
        if self.store.commit(batch).await.is_ok() {
            let now_ms = self.clock.monotonic_ms();
            lock(&self.validity).acknowledged(sent_ms, now_ms);
            self.beats.send_modify(|beats| *beats += 1);
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

/// Beats: often while there are owners, and now and then where there are none, so that others know of the node.
async fn beat(nodes: Weak<Nodes>, wanted: Arc<Notify>) {
    while let Some(alive) = nodes.upgrade() {
        alive.send_beat().await;
        alive.forget_absent().await;
        let rest_ms = match alive.holders.load(Ordering::Acquire) {
            0 => IDLE_BEAT_MS,
            _ => BEAT_MS,
        };
        drop(alive);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(rest_ms)) => {}
            () = wanted.notified() => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.guard()
}
