//! The network edge of prombus: WebSocket and HTTP on one port, authentication, rate limits and metrics.

mod api_error;
pub mod auth;
mod credentials;
mod error_log;
mod gateway;
mod header_index;
mod history;
mod http;
mod in_flight;
pub mod limits;
pub mod metrics;
mod origin;
mod peer;
mod server;
mod session;
mod throttled;
mod tls;
mod to_bus;
mod transport;

pub use gateway::{Gateway, GatewayOptions};
pub use server::Server;
pub use tls::{Tls, TlsConfig, TlsError};
