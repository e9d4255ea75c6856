//! Everything of this crate against a server that speaks MongoDB's protocol, one file for each part.
#![cfg(test)]

mod changefeed;
mod changelog;
mod dedupe;
mod lab;
mod mirror;
#[path = "../../../replicated/tests/mongo/server.rs"]
mod mongo_server;
mod outbox;
#[path = "../../../replicated/tests/jetstream/ports.rs"]
mod ports;
mod transactional;
