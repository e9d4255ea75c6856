//! The gateway over real sockets: a server in this process on a port of the system's choice, and clients that write
//! their own bytes, because a library would be too polite.
#![cfg(test)]

#[path = "sockets/support.rs"]
mod support;

#[path = "sockets/ack_publish.rs"]
mod ack_publish;
#[path = "sockets/auth.rs"]
mod auth;
#[cfg(feature = "otlp")]
#[path = "http/collector.rs"]
mod collector;
#[path = "sockets/delivery.rs"]
mod delivery;
#[path = "sockets/drain.rs"]
mod drain;
#[path = "sockets/failing_store.rs"]
mod failing_store;
#[path = "sockets/fan_in.rs"]
mod fan_in;
#[path = "sockets/frames.rs"]
mod frames;
#[path = "sockets/handshake.rs"]
mod handshake;
#[path = "sockets/limits.rs"]
mod limits;
#[path = "sockets/metrics.rs"]
mod metrics;
#[path = "sockets/partitions.rs"]
mod partitions;
#[path = "sockets/protocol.rs"]
mod protocol;
#[path = "sockets/publish.rs"]
mod publish;
#[path = "sockets/schemas.rs"]
mod schemas;
#[path = "sockets/settle.rs"]
mod settle;
#[path = "sockets/slow_clients.rs"]
mod slow_clients;
#[cfg(feature = "otlp")]
#[path = "sockets/spans.rs"]
mod spans;
