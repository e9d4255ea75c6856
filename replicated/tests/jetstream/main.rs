//! The replicated store on real NATS servers: the conformance suite with one server and with a cluster of three, and what
//! happens when servers are killed, paused, purged or edited.
#![cfg(test)]
#![cfg(feature = "nats")]

mod conformance;
mod failures;
#[path = "../engines/nodes.rs"]
mod nodes;
mod ports;
mod servers;
mod snapshots;
mod streams;
