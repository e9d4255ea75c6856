//! The real binary on a port of its own, over real sockets, one file for each kind of behaviour.
#![cfg(test)]

mod backup;
mod cluster;
mod cluster_rounds;
mod commands;
mod cutting_proxy;
mod damage;
mod edge;
mod full_disk;
mod groups;
mod jetstream;
mod keys;
mod lifetime;
mod many_groups;
mod memory;
#[path = "../../../replicated/tests/mongo/server.rs"]
mod mongo_server;
mod mongodb;
mod mongodb_commands;
mod monitoring;
#[path = "../../../replicated/tests/jetstream/servers.rs"]
mod nats_servers;
mod outbox;
mod people;
#[path = "../../../replicated/tests/jetstream/ports.rs"]
mod ports;
mod project;
mod projector;
mod raw_socket;
mod readme;
mod schedules;
mod schemas;
mod server;
mod shared_store;
mod slips;
mod soak;
mod terminal;
mod topic_files;
