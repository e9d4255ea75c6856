//! The real binary on a port of its own, over real sockets, one file for each kind of behaviour.
#![cfg(test)]

mod damage;
mod full_disk;
mod groups;
mod keys;
mod lifetime;
mod outbox;
mod project;
mod projector;
mod readme;
mod server;
mod shell;
mod soak;
