//! The replicated store in a MongoDB database: the conformance suite, what the log is, and what happens when the server is
//! killed or somebody edits the collection.
#![cfg(test)]
#![cfg(feature = "mongo")]

mod collection;
mod conformance;
mod failures;
#[path = "../engines/nodes.rs"]
mod nodes;
#[path = "../jetstream/ports.rs"]
mod ports;
mod server;
mod snapshots;
