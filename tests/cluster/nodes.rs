//! Nodes on a shared log in memory, each of which can be cut off from it.

use prombus::error::PublishError;
use prombus::{Bus, BusOptions, NodeProbe, PublishOptions, Store, SystemClock};
use prombus_replicated::simulated::SimulatedLog;
use prombus_replicated::{
    AppendError, Bounds, Description, Follower, MemoryCopy, Options, ReplicatedStore, SharedLog,
    Unavailable,
};
use prombus_store::{Answer, Durability};
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Far more than anything needs on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A bus on a store of its own over the shared log.
pub(crate) struct Node {
    pub(crate) bus: Bus,
    store: Arc<ReplicatedStore>,
    log: SimulatedLog,
    is_cut: Arc<AtomicBool>,
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
    [node(&log, "one").await, node(&log, "two").await]
}

async fn node(log: &SimulatedLog, name: &str) -> Node {
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
    bus.introduce_node(format!("http://{name}"), Arc::new(NoProbe));
    Node {
        bus,
        store,
        log: log.clone(),
        is_cut,
    }
}

impl Node {
    /// Cuts the node off from the log, or joins it again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
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
