//! What all parts of one bus share.

use crate::group::ownership::Nodes;
use crate::group::relay::{AskedNodes, Lingering};
use crate::group::unwritten::Unwritten;
use crate::memory::ByteBudget;
use crate::options::BusOptions;
use crate::projector::RunningProjectors;
use crate::schedule::Schedules;
use crate::schemas::Schemas;
use crate::shadow::Shadows;
use crate::topics::Topics;
use prombus_store::{Clock, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

/// The shared inside of a bus: no tasks, no groups, only what they all need.
pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: BusOptions,
    pub(crate) topics: Topics,
    /// The schemas of topics, compiled.
    pub(crate) schemas: Arc<Schemas>,
    /// Held while a topic's settings or schemas are changed, so that neither change undoes the other.
    pub(crate) topic_change: tokio::sync::Mutex<()>,
    /// Groups whose record the store did not take.
    pub(crate) unwritten: Unwritten,
    /// This node among those that share the store, where several do.
    pub(crate) nodes: Option<Arc<Nodes>>,
    /// Members of other nodes whose links broke.
    pub(crate) lingering: Lingering,
    /// The other nodes as those who are asked about the groups that they serve.
    pub(crate) asked_nodes: AskedNodes,
    /// Events that wait in memory to be delivered.
    pub(crate) memory: Arc<ByteBudget>,
    /// What runs beside the groups.
    pub(crate) projectors: RunningProjectors,
    /// What is scheduled.
    pub(crate) schedules: Schedules,
    /// Groups that are fed again.
    pub(crate) shadows: Shadows,
    /// Set once, by closing; nothing new is taken in after that.
    closed: AtomicBool,
    /// Notifies the tasks that wait for the closing.
    closing: watch::Sender<bool>,
    /// Numbers members and ephemeral groups.
    next_number: AtomicU64,
}

/// Learns when the bus is closed or gone.
#[derive(Debug, Clone)]
pub(crate) struct Closing(watch::Receiver<bool>);

impl Closing {
    pub(crate) fn is_closed(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the bus is closed or dropped.
    pub(crate) async fn closed(&mut self) {
        // An error says that the sender is gone, and with it the bus.
        let _ = self.0.wait_for(|closed| *closed).await;
    }
}

impl Core {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        options: BusOptions,
        topics: Topics,
        nodes: Option<Arc<Nodes>>,
    ) -> Self {
        Self {
            memory: Arc::new(ByteBudget::new(options.delivery_bytes)),
            schemas: Arc::new(Schemas::new(store.clone())),
            topic_change: tokio::sync::Mutex::new(()),
            store,
            options,
            topics,
            unwritten: Unwritten::default(),
            nodes,
            lingering: Lingering::default(),
            asked_nodes: AskedNodes::default(),
            projectors: RunningProjectors::default(),
            schedules: Schedules::default(),
            shadows: Shadows::default(),
            closed: AtomicBool::new(false),
            closing: watch::Sender::new(false),
            next_number: AtomicU64::new(1),
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.options.clock
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock().now_ms()
    }

    /// What deadlines are measured with: it never steps.
    pub(crate) fn monotonic_ms(&self) -> u64 {
        self.clock().monotonic_ms()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes, and says whether it was open.
    pub(crate) fn close(&self) -> bool {
        let was_open = !self.closed.swap(true, Ordering::AcqRel);
        self.closing.send_replace(true);
        was_open
    }

    /// A way to learn of the closing that does not keep the bus alive.
    pub(crate) fn closing(&self) -> Closing {
        Closing(self.closing.subscribe())
    }

    /// A number that this bus has not given before.
    pub(crate) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }
}
