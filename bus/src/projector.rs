//! Projectors: what one topic says, folded into state, and what that state says to another topic.
//!
//! ```text
//!              fold, tick                one atomic batch
//!   input ────────────────▶ state ────▶ emitted events + position
//!     ▲ in order, once          ▲               │
//!     │                         └── restored ◀──┤ on start
//!     └──────────── from the position ◀─────────┘
//! ```
//!
//! What a projector emits and how far it has read are committed together, so however often it is killed nothing is
//! emitted twice and nothing is left out. The position's record is compared and set: of two runners of one projector
//! only one wins each commit, and the other becomes a standby.

mod emitter;
mod handle;
mod process;
mod record;
mod runner;
mod running;

pub use emitter::Emitter;
pub use handle::{ProjectorHandle, ProjectorInfo, ProjectorStatus};
pub use process::{ProcessProjector, ProcessState, ProcessStatus, Processes};
pub(crate) use running::RunningProjectors;

use crate::bus::Bus;
use crate::error::{InvalidField, ProjectorError};
use crate::topic::TopicConfig;
use prombus_interface::names::{check_group, check_topic};
use prombus_store::StoredEvent;
use runner::Runner;
use running::Running;
use std::sync::Arc;
use tokio::runtime::Handle;

/// A state, how events change it, and what it emits when they do.
///
/// Everything is a plain function of (state, event, now): the runner does the reading, the waiting and the writing.
///
/// ```
/// use prombus::{Emitter, Projector, PublishOptions, StoredEvent};
/// use serde::{Deserialize, Serialize};
/// use std::collections::BTreeMap;
///
/// /// How much each customer has ordered so far.
/// struct OrderTotals;
///
/// #[derive(Deserialize)]
/// struct Order {
///     customer: String,
///     cents: u64,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Total {
///     orders: u64,
///     cents: u64,
/// }
///
/// impl Projector for OrderTotals {
///     type State = BTreeMap<String, Total>;
///
///     fn name(&self) -> &str {
///         "order-totals"
///     }
///     fn input(&self) -> &str {
///         "orders"
///     }
///     fn output(&self) -> &str {
///         "order.totals"
///     }
///
///     fn fold(&self, totals: &mut Self::State, event: &StoredEvent, _now_ms: u64, emit: &mut Emitter) {
///         let order: Order = match serde_json::from_str(event.payload()) {
///             Ok(order) => order,
///             Err(error) => return emit.reject(error),
///         };
///         let total = totals.entry(order.customer.clone()).or_insert(Total { orders: 0, cents: 0 });
///         total.orders += 1;
///         total.cents += order.cents;
///         let options = PublishOptions { key: Some(&order.customer), ..PublishOptions::default() };
///         if let Err(error) = emit.emit(total, &options) {
///             emit.reject(error);
///         }
///     }
///
///     // The latest event of each key is the whole state, so that is where it comes back from.
///     fn restore(&self, totals: &mut Self::State, event: &StoredEvent) {
///         if let (Some(customer), Ok(total)) = (event.key(), serde_json::from_str(event.payload())) {
///             totals.insert(customer.into_owned(), total);
///         }
///     }
/// }
/// ```
pub trait Projector: Send + Sync + 'static {
    /// What it remembers between events. Its size is the projector's to limit.
    type State: Default + Send + 'static;

    /// Its name, under which its position is kept: 1 to 128 characters, as for a group.
    fn name(&self) -> &str;

    /// The topic that it reads.
    fn input(&self) -> &str;

    /// The topic that it emits to, which is made where it does not exist.
    fn output(&self) -> &str;

    /// How the output topic is made: `defaults` is what the bus would make of it.
    fn output_config(&self, defaults: TopicConfig) -> TopicConfig {
        TopicConfig {
            compaction: true,
            ..defaults
        }
    }

    /// Where the state comes from on start.
    fn rebuild(&self) -> Rebuild {
        Rebuild::FromOutput
    }

    /// Takes in the next event of the input, and emits what follows from it. `now_ms` is when it is folded.
    fn fold(&self, state: &mut Self::State, event: &StoredEvent, now_ms: u64, emit: &mut Emitter);

    /// Takes back in the latest event of a key that was emitted before, tombstones too. Only for
    /// [`Rebuild::FromOutput`].
    fn restore(&self, state: &mut Self::State, event: &StoredEvent) {
        let _ = (state, event);
    }

    /// How often [`Self::tick`] is called; never where it says nothing.
    fn tick_interval_ms(&self) -> Option<u64> {
        None
    }

    /// Emits what follows from the time alone. Called only when the state has taken in all of the input, so that what
    /// merely waits to be read is not taken for missing. Where [`Emitter::is_full`] it leaves the rest: it is called
    /// again at once.
    fn tick(&self, state: &mut Self::State, now_ms: u64, emit: &mut Emitter) {
        let _ = (state, now_ms, emit);
    }
}

/// Where a projector's state comes from on start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    /// The latest event of each key of the output is the state.
    FromOutput,
    /// The input is folded again from its oldest event up to the position, and what that emits is dropped. What
    /// retention has taken from the input is then missing in the state.
    FromInput,
}

impl Bus {
    /// Runs a projector until its handle is dropped or stopped, or the bus is closed.
    ///
    /// It begins with the oldest event of its input, or goes on behind the last one whose results are in the output.
    /// Where the output was deleted or emptied meanwhile it begins anew.
    pub fn run_projector<P: Projector>(
        &self,
        projector: P,
    ) -> Result<ProjectorHandle, ProjectorError> {
        check_topic(projector.input())?;
        check_topic(projector.output())?;
        check_group(projector.name())
            .map_err(|error| InvalidField::new("name", error.to_string()))?;
        if projector.input() == projector.output() {
            let reason = "the projector would read its own output";
            return Err(InvalidField::new("output", reason).into());
        }
        let core = self.core();
        if core.is_closed() {
            return Err(ProjectorError::Closed);
        }
        let runtime = Handle::try_current().map_err(|_| ProjectorError::NoRuntime)?;
        let name = projector.name().into();
        let (input, output) = (projector.input().into(), projector.output().into());
        let runner = Runner::new(core.clone(), projector);
        let shared_status = runner.shared_status();
        let task = runtime.spawn(runner.run());
        let running = Arc::new(Running {
            name,
            input,
            output,
            shared_status,
            task: task.abort_handle(),
        });
        core.projectors.add(&running);
        Ok(ProjectorHandle::new(core.clone(), running, task))
    }

    /// The projectors that run on this bus, in the order in which they were started, and how they are doing.
    pub fn projectors(&self) -> Vec<ProjectorInfo> {
        let core = self.core();
        core.projectors.infos(core)
    }
}
