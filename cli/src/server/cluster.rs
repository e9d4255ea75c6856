//! This server among others on the same store: where they and their clients find it, and how it finds out that one of
//! them is gone.

use crate::config::Config;
use prombus::{Bus, NodeProbe};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a port may take to refuse.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Tells the other nodes where this one listens. Does nothing where the store is not shared.
pub(super) fn introduce(config: &Config, addresses: &[SocketAddr], bus: &Bus) {
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    if let Some(address) = addresses.first() {
        bus.introduce_node(format!("{scheme}://{address}"), Arc::new(PortProbe));
    }
}

/// A node that is silent and whose port refuses connections has ended, and its connections with it. One that does not
/// answer at all may only be cut off.
struct PortProbe;

impl NodeProbe for PortProbe {
    fn is_gone(&self, url: &str) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let address = url.split_once("://").map_or(url, |(_, rest)| rest);
        let address = address.trim_end_matches('/').to_owned();
        Box::pin(async move {
            let connecting = TcpStream::connect(address);
            match tokio::time::timeout(PROBE_TIMEOUT, connecting).await {
                Ok(Err(error)) => error.kind() == ErrorKind::ConnectionRefused,
                Ok(Ok(_)) | Err(_) => false,
            }
        })
    }
}
