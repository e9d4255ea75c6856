//! The real binary on a port of its own, over real sockets, one file for each kind of behaviour.
#![cfg(test)]

mod damage;
mod full_disk;
mod groups;
mod keys;
mod lifetime;
mod many_groups;
mod memory;
mod outbox;
mod project;
mod projector;
mod raw_socket;
mod readme;
mod server;
mod shell;
mod soak;
