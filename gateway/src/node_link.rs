//! Links between the nodes of a shared store: an HTTP request for an upgrade at `/node`, and messages with their lengths in both
//! directions after it. A node shows the secret that all of them find in their store, so that no member's token has to travel.

use crate::api_error::ApiError;
use crate::gateway::Gateway;
use crate::http::{Body, Request, Response};
use crate::session::NextSession;
use crate::tls::Tls;
use crate::transport::Transport;
use hyper::header::HeaderValue;
use hyper::upgrade::{OnUpgrade, Parts, Upgraded};
use hyper::{HeaderMap, StatusCode, header};
use hyper_util::rt::TokioIo;
use prombus::{NodeDialer, NodeLink};
use prombus_api::Code;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring as provider};

/// Where nodes ask for a link.
pub(crate) const PATH: &str = "/node";
/// What they upgrade to.
const PROTOCOL: &str = "prombus-node";
/// What a node shows.
const SECRET_HEADER: &str = "prombus-node-secret";
/// The largest message: as large as the largest batch that a member may publish with an acknowledgement.
const MAX_LINK_MESSAGE_BYTES: usize = 64 << 20;
/// The longest answer to the request for an upgrade.
const MAX_ANSWER_BYTES: usize = 4 << 10;

/// Whether a request asks for a link.
pub(crate) fn is_upgrade(request: &Request) -> bool {
    let asks = |headers: &HeaderMap| {
        let upgrade = headers.get(header::UPGRADE);
        upgrade.is_some_and(|upgrade| upgrade.as_bytes() == PROTOCOL.as_bytes())
    };
    request.uri().path() == PATH && asks(request.headers())
}

/// Upgrades a request of a node that has the secret.
pub(crate) async fn upgrade(
    gateway: Arc<Gateway>,
    next: &NextSession,
    mut request: Request,
) -> Result<Response, ApiError> {
    let shown = request.headers().get(SECRET_HEADER).cloned();
    let secret = gateway.bus.node_secret().await;
    let is_known = secret.zip(shown).is_some_and(|(secret, shown)| {
        // The time that this takes says nothing about the secret.
        let digest = |bytes: &[u8]| ring::digest::digest(&ring::digest::SHA256, bytes);
        digest(secret.as_bytes()).as_ref() == digest(shown.as_bytes()).as_ref()
    });
    if !is_known {
        let message = "only nodes of the same store are linked";
        return Err(ApiError::new(Code::Unauthorized, message));
    }
    let on_upgrade = hyper::upgrade::on(&mut request);
    // Not in the connection's own task: a server that drains waits for those, and serves other nodes until the bus is closed.
    next.put(async move { drop(tokio::spawn(serve(gateway, on_upgrade))) });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(response)
}

async fn serve(gateway: Arc<Gateway>, on_upgrade: OnUpgrade) {
    // A node that is gone before its link began needs no answer.
    let Ok(upgraded) = on_upgrade.await else {
        return;
    };
    let Ok(Parts { io, read_buf, .. }) = Upgraded::downcast::<TokioIo<Transport>>(upgraded) else {
        return;
    };
    let (ours, theirs) = NodeLink::pair();
    let carrying = carry(io.into_inner(), read_buf.to_vec(), theirs);
    let serving = gateway.bus.serve_node_link(ours);
    tokio::join!(carrying, serving);
}

/// Opens links by TCP, or by TLS where the URL of a node says so.
#[derive(Debug)]
pub struct NodeLinks {
    tls: Option<Arc<Tls>>,
}

impl NodeLinks {
    /// Links that present the certificate of this server to nodes that ask for one.
    #[must_use]
    pub fn new(tls: Option<Arc<Tls>>) -> Self {
        Self { tls }
    }
}

impl NodeDialer for NodeLinks {
    fn dial(
        &self,
        url: String,
        secret: String,
    ) -> Pin<Box<dyn Future<Output = Result<NodeLink, String>> + Send>> {
        let tls = self.tls.clone();
        Box::pin(async move {
            let dialed = dial(&url, &secret, tls.as_deref()).await;
            dialed.map_err(|error| format!("cannot reach the node {url}: {error}"))
        })
    }
}

async fn dial(url: &str, secret: &str, tls: Option<&Tls>) -> io::Result<NodeLink> {
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidInput, reason);
    let (scheme, address) = url.split_once("://").ok_or_else(|| invalid("not a URL"))?;
    let tcp = TcpStream::connect(address).await?;
    tcp.set_nodelay(true)?;
    if scheme == "http" {
        return begin(tcp, address, secret).await;
    }
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let name = ServerName::try_from(host).map_err(|_| invalid("not a host"))?;
    let stream = connector(tls)?.connect(name, tcp).await?;
    begin(stream, address, secret).await
}

/// TLS with the authorities that this machine trusts.
fn connector(tls: Option<&Tls>) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let builder = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    let config = match tls.map(Tls::identity).transpose() {
        Ok(None) => builder.with_no_client_auth(),
        Ok(Some((chain, key))) => builder
            .with_client_auth_cert(chain, key)
            .map_err(io::Error::other)?,
        Err(error) => return Err(io::Error::other(error)),
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Asks for the upgrade, and carries messages from then on.
async fn begin<S>(mut stream: S, host: &str, secret: &str) -> io::Result<NodeLink>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = format!(
        "GET {PATH} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: {PROTOCOL}\r\n\
         {SECRET_HEADER}: {secret}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= MAX_ANSWER_BYTES {
            return Err(io::Error::other("its answer is too long"));
        }
        answer.push(stream.read_u8().await?);
    }
    if !answer.starts_with(b"HTTP/1.1 101") {
        let first = answer
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        let first = String::from_utf8_lossy(first).into_owned();
        return Err(io::Error::other(format!("it said {first:?}")));
    }
    let (ours, theirs) = NodeLink::pair();
    tokio::spawn(carry(stream, Vec::new(), theirs));
    Ok(ours)
}

/// Carries messages in both directions until either side ends.
async fn carry<S>(stream: S, read_already: Vec<u8>, link: NodeLink)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let (read, write) = tokio::io::split(stream);
    let (sender, mut receiver) = link.split();
    let reading = async {
        let mut read = io::Cursor::new(read_already).chain(read);
        while let Ok(message) = read_message(&mut read).await {
            if !sender.send(message).await {
                // What is left to be written goes out before the end.
                std::future::pending::<()>().await;
            }
        }
    };
    let writing = async {
        let mut write = BufWriter::new(write);
        while let Some(message) = receiver.recv().await {
            if write_message(&mut write, &message).await.is_err() {
                return;
            }
            // More that waits goes with it.
            while let Some(message) = receiver.try_recv() {
                if write_message(&mut write, &message).await.is_err() {
                    return;
                }
            }
            if write.flush().await.is_err() {
                return;
            }
        }
        let _ = write.shutdown().await;
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}

async fn read_message(read: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = read.read_u32_le().await? as usize;
    if length > MAX_LINK_MESSAGE_BYTES {
        return Err(io::Error::other("a message is too long"));
    }
    let mut message = Vec::new();
    let mut rest = read.take(length as u64);
    // Memory follows what has come.
    rest.read_to_end(&mut message).await?;
    if message.len() == length {
        Ok(message)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

async fn write_message(write: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    write.write_u32_le(length).await?;
    write.write_all(message).await
}
