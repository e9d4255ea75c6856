//! The HTTP side of a server, asked over real sockets: one file for each behaviour.

#![cfg(test)]

mod auth;
mod broken;
mod bulk;
mod client;
mod dead_letters;
mod export;
mod groups;
mod limits;
mod listing;
mod origin;
mod protocol;
mod publish;
mod pull;
mod reading;
mod server;
mod snap;
mod sse;
mod topics;
