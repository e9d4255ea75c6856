//! The other end of a connection, for authentication and for the error log.

use std::net::SocketAddr;
use std::sync::Arc;

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// The common name of the certificate that it presented, where it did.
    pub(crate) subject: Option<Arc<str>>,
}
