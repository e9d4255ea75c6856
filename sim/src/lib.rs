//! A seeded simulation of the whole bus. Members subscribe, settle, pause, disconnect and come back; topics are
//! deleted and made again, cursors are set, groups removed, the wall clock steps, the process restarts or crashes. The
//! store answers after random virtual delays, which is what makes races happen. A model checks what the members see.
//!
//! Everything is derived from the seed, time is tokio's paused time, and all tasks run on one thread: the same seed gives
//! the same trace, byte for byte.
//!
//! ```text
//!   run(seed) ─► lives ─► members (subscribe, settle) ──► Model: leases, order, filters, credit, cursor, completeness
//!                  └────► operations (publish, seek, …) ─► Bus ─► SimStore (delays) ─► MemoryStore | FileStore on FaultFiles
//! ```

mod calm;
mod clock;
mod members;
mod model;
mod operations;
mod pauses;
mod spec;
mod store;
mod world;

pub use store::Kind;
pub use world::{Outcome, run};
