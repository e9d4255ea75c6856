//! prombus on the network: one port for WebSocket and HTTP, who may do what, how fast, and what is counted.

pub mod auth;
mod complaints;
mod credentials;
mod denied;
mod gateway;
mod http;
pub mod limits;
pub mod metrics;
mod origin;
mod said;
mod server;
mod session;
mod slowed;
mod to_bus;

pub use gateway::{Gateway, GatewayOptions};
pub use server::Server;
