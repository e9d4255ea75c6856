//! This server among others on the same store: where their clients find it, and how it finds out that the process of
//! one of them has ended.

use crate::config::Config;
use prombus::{Bus, NodeProbe};
use prombus_gateway::NodeLinks;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

/// Announces to the other nodes where this one is reached. Does nothing where the store is not shared.
pub(super) fn introduce(config: &Config, addresses: &[SocketAddr], links: NodeLinks, bus: &Bus) {
    if let (Some(address), Some(me)) = (addresses.first(), bus.store().shared_as()) {
        let probe = ProcessProbe::start(me.boot);
        bus.introduce_node(url(config, *address), Arc::new(probe));
        match fresh_secret() {
            Some(secret) => bus.link_nodes(Arc::new(links), secret),
            None => tracing::warn!("no random numbers: members are not relayed to other nodes"),
        }
    }
}

fn url(config: &Config, address: SocketAddr) -> String {
    if let Some(url) = &config.advertise {
        return url.clone();
    }
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let url = format!("{scheme}://{address}");
    if address.ip().is_unspecified() {
        tracing::warn!(
            "{url} is announced to the other nodes, which is no address of this machine; set --advertise to a URL that they reach"
        );
    }
    url
}

/// What nodes know each other by, on a store that has no such secret yet.
fn fresh_secret() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Tells whether a node's process has ended, for nodes on this machine: each listens on a socket that only its end closes,
/// under a name that only its boot has. A process that is stopped still has its socket. Of nodes on other machines nothing
/// is certain, for a network between that fails looks the same.
struct ProcessProbe {
    /// Machine and network namespace, in which the names of sockets are known; `None` where that cannot be told.
    place: Option<String>,
    /// Open until the process ends.
    _listener: Option<sockets::Listener>,
}

impl ProcessProbe {
    fn start(boot: u64) -> Self {
        let listener = sockets::listen(&socket_name(boot));
        let place = listener.as_ref().and_then(|_| sockets::place());
        Self {
            place,
            _listener: listener,
        }
    }
}

impl NodeProbe for ProcessProbe {
    fn place(&self) -> Option<String> {
        self.place.clone()
    }

    fn is_gone(&self, boot: u64) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(async move { sockets::is_refused(&socket_name(boot)) })
    }
}

fn socket_name(boot: u64) -> String {
    format!("prombus-node-{boot:016x}")
}

/// Sockets in the abstract namespace of Linux, which are gone with their process and leave no file.
#[cfg(target_os = "linux")]
mod sockets {
    use std::io::ErrorKind;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    pub(super) type Listener = UnixListener;

    pub(super) fn listen(name: &str) -> Option<Listener> {
        let address = SocketAddr::from_abstract_name(name).ok()?;
        UnixListener::bind_addr(&address).ok()
    }

    /// Whether no process listens under this name. Connecting within a machine does not wait for the other side: nobody
    /// accepts, and few ever ask.
    pub(super) fn is_refused(name: &str) -> bool {
        let Ok(address) = SocketAddr::from_abstract_name(name) else {
            return false;
        };
        let connected = UnixStream::connect_addr(&address);
        connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    /// The running kernel and the network namespace.
    pub(super) fn place() -> Option<String> {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let network = std::fs::read_link("/proc/self/ns/net").ok()?;
        Some(format!("{} {}", kernel.trim(), network.display()))
    }
}

/// Other systems have no such sockets, so nothing is certain there.
#[cfg(not(target_os = "linux"))]
mod sockets {
    pub(super) type Listener = std::convert::Infallible;

    pub(super) fn listen(_: &str) -> Option<Listener> {
        None
    }

    pub(super) fn is_refused(_: &str) -> bool {
        false
    }

    pub(super) fn place() -> Option<String> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_is_gone_when_nothing_listens_under_its_boot() {
        let boot = u64::from(std::process::id()) << 32 | 7;
        let other = ProcessProbe::start(boot);
        let probe = ProcessProbe::start(boot + 1);
        assert!(probe.place().is_some() && probe.place() == other.place());
        assert!(!probe.is_gone(boot).await, "it listens");
        drop(other);
        assert!(probe.is_gone(boot).await, "its socket went with it");
    }
}
