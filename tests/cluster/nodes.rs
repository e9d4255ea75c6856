//! Nodes on a shared log in memory, each of which can be cut off from it.

use prombus::error::PublishError;
use prombus::{
    Bus, BusOptions, NodeDialer, NodeLink, NodeProbe, PublishOptions, Store, SystemClock,
};
use prombus_replicated::simulated::SimulatedLog;
use prombus_replicated::{
    AppendError, Bounds, Description, Follower, MemoryCopy, Options, ReplicatedStore, SharedLog,
    Unavailable,
};
use prombus_store::{Answer, Durability};
use std::collections::HashMap;
use std::future::ready;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Far more than anything needs on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A bus on a store of its own over the shared log.
pub(crate) struct Node {
    pub(crate) bus: Bus,
    store: Arc<ReplicatedStore>,
    log: SimulatedLog,
    is_cut: Arc<AtomicBool>,
    links: Arc<Links>,
}

/// What links the nodes of one test, by their URLs.
#[derive(Default)]
pub(crate) struct Links {
    buses: Mutex<HashMap<String, Bus>>,
    /// Links are cut, and none can be opened.
    is_cut: AtomicBool,
    open: Mutex<Vec<AbortHandle>>,
}

struct Dialer(Arc<Links>);

impl NodeDialer for Dialer {
    fn dial(
        &self,
        url: String,
        secret: String,
    ) -> Pin<Box<dyn Future<Output = Result<NodeLink, String>> + Send>> {
        let links = self.0.clone();
        Box::pin(async move {
            let bus = links.buses.lock().expect("a lock").get(&url).cloned();
            let Some(bus) = bus.filter(|_| !links.is_cut.load(Ordering::Relaxed)) else {
                return Err("unreachable".to_owned());
            };
            assert_eq!(
                bus.node_secret().await,
                Some(secret),
                "one store, one secret"
            );
            let (ours, carried) = NodeLink::pair();
            let (other, theirs) = NodeLink::pair();
            let serving = tokio::spawn(async move { bus.serve_node_link(theirs).await });
            // Ending this task is what cutting a cable is.
            let carrying = tokio::spawn(async move {
                let ((to_us, mut from_us), (to_them, mut from_them)) =
                    (carried.split(), other.split());
                loop {
                    let is_open = tokio::select! {
                        Some(message) = from_us.recv() => to_them.send(message).await,
                        Some(message) = from_them.recv() => to_us.send(message).await,
                        else => false,
                    };
                    if !is_open {
                        break;
                    }
                }
            });
            drop(serving);
            links
                .open
                .lock()
                .expect("a lock")
                .push(carrying.abort_handle());
            Ok(ours)
        })
    }
}

/// The shared log as one node reaches it. A node that is cut off hears of what others append, and can append nothing.
struct NodeLog {
    log: SimulatedLog,
    is_cut: Arc<AtomicBool>,
}

/// Nobody is known to be gone.
struct NoProbe;

impl NodeProbe for NoProbe {
    fn place(&self) -> Option<String> {
        None
    }

    fn is_gone(&self, _: u64) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(ready(false))
    }
}

impl SharedLog for NodeLog {
    fn append(&self, message: bytes::Bytes, durability: Durability) -> Answer<u64, AppendError> {
        if self.is_cut.load(Ordering::Relaxed) {
            let cause = "cut off".into();
            return Box::pin(ready(Err(AppendError::Unknown { cause })));
        }
        self.log.append(message, durability)
    }

    fn follow(&self, after: u64) -> Follower {
        self.log.follow(after)
    }

    fn bounds(&self) -> Answer<Bounds, Unavailable> {
        if self.is_cut.load(Ordering::Relaxed) {
            let cause = "cut off".into();
            return Box::pin(ready(Err(Unavailable { cause })));
        }
        self.log.bounds()
    }

    fn trim(&self, through: u64) -> Answer<(), Unavailable> {
        self.log.trim(through)
    }

    fn description(&self) -> &Description {
        self.log.description()
    }
}

/// Two nodes on one log.
pub(crate) async fn cluster() -> [Node; 2] {
    let log = SimulatedLog::new(7);
    [node(&log, "one", None).await, node(&log, "two", None).await]
}

/// Three nodes on one log that are linked.
pub(crate) async fn linked_cluster() -> [Node; 3] {
    let log = SimulatedLog::new(7);
    let links = Arc::new(Links::default());
    [
        node(&log, "one", Some(&links)).await,
        node(&log, "two", Some(&links)).await,
        node(&log, "three", Some(&links)).await,
    ]
}

async fn node(log: &SimulatedLog, name: &str, links: Option<&Arc<Links>>) -> Node {
    let is_cut = Arc::new(AtomicBool::new(false));
    let reached = NodeLog {
        log: log.clone(),
        is_cut: is_cut.clone(),
    };
    let copy = Arc::new(MemoryCopy::new(7));
    let clock = Arc::new(SystemClock);
    let opened = ReplicatedStore::open(Arc::new(reached), copy, clock, Options::default()).await;
    let store = Arc::new(opened.expect("a store"));
    let options = BusOptions {
        dormant_after_ms: 200,
        ..BusOptions::default()
    };
    let bus = Bus::open(store.clone(), options).expect("a bus");
    let url = format!("http://{name}");
    bus.introduce_node(url.clone(), Arc::new(NoProbe));
    let links = links.cloned().inspect(|links| {
        bus.link_nodes(Arc::new(Dialer(links.clone())), format!("secret of {name}"));
        links.buses.lock().expect("a lock").insert(url, bus.clone());
    });
    Node {
        bus,
        store,
        log: log.clone(),
        is_cut,
        links: links.unwrap_or_default(),
    }
}

impl Node {
    /// Cuts the node off from the log, or joins it again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Cuts all links between nodes, or lets them be opened again.
    pub(crate) fn cut_links(&self, is_cut: bool) {
        self.links.is_cut.store(is_cut, Ordering::Relaxed);
        for link in self.links.open.lock().expect("a lock").drain(..) {
            link.abort();
        }
    }

    /// Takes the log away from all nodes, or gives it back.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.log.set_away(is_away);
    }

    /// Waits until the node has applied all there is.
    pub(crate) async fn catch_up(&self) {
        self.store.barrier().await.expect("caught up");
    }

    /// Publishes numbers.
    pub(crate) async fn publish(&self, range: std::ops::Range<usize>) {
        for number in range {
            self.try_publish(number).await.expect("published");
        }
    }

    pub(crate) async fn try_publish(&self, number: usize) -> Result<(), PublishError> {
        let options = PublishOptions::default();
        self.bus.publish("t", &number, &options).await?;
        Ok(())
    }
}
