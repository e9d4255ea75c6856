//! The HTTP side of a server, asked over real sockets: one file for each behaviour.

#![cfg(test)]

mod auth;
mod broken;
mod bulk;
mod client;
mod cloudevents;
#[cfg(feature = "otlp")]
mod collector;
mod dashboard;
mod dead_letters;
mod diff;
mod export;
mod find;
mod groups;
mod limits;
mod list;
mod manners;
mod origin;
mod protocol;
mod publish;
mod pull;
mod read;
mod schedules;
mod schemas;
mod server;
mod shadows;
mod snap;
#[cfg(feature = "otlp")]
mod spans;
mod sse;
mod tls;
mod topics;
mod upcasts;
