//! The network edge of prombus: WebSocket and HTTP on one port, authentication, rate limits and metrics.
//!
//! ```no_run
//! use prombus::{Bus, BusOptions, SystemClock};
//! use prombus_gateway::auth::Authenticator;
//! use prombus_gateway::{Gateway, GatewayOptions, Server};
//! use prombus_store::memory::MemoryStore;
//! use std::sync::Arc;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new(Arc::new(SystemClock));
//! let bus = Bus::open(Arc::new(store), BusOptions::default())?;
//! let gateway = Gateway::new(bus.clone(), Authenticator::off(), GatewayOptions::default())?;
//! let server = Server::bind(gateway.clone(), &["127.0.0.1:8090".parse()?]).await?;
//! // Until `gateway.drain()` is called.
//! server.serve().await;
//! bus.close().await?;
//! # Ok(())
//! # }
//! ```

mod also_publish;
mod api_error;
pub mod auth;
mod batch_spans;
mod cloudevents;
mod credentials;
mod error_log;
mod gateway;
mod header_index;
mod history;
mod http;
mod in_flight;
pub mod limits;
pub mod metrics;
mod node_link;
mod origin;
mod peer;
mod server;
mod session;
#[cfg(feature = "otlp")]
pub mod spans;
mod throttled;
mod tls;
mod to_bus;
mod transport;

pub use gateway::{Gateway, GatewayOptions};
pub use node_link::NodeLinks;
pub use server::Server;
pub use tls::{Tls, TlsConfig, TlsError};
