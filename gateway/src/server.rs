//! The port: accepts connections, speaks HTTP/1.1 on them and hands those that ask for it over to a WebSocket session.

use crate::gateway::Gateway;
use crate::history;
use crate::http::{self, Connection};
use crate::peer::Peer;
use crate::session::NextSession;
use crate::tls::{self, Tls};
use crate::transport::Transport;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWrite as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

/// The most headers of a request; one with more is rejected.
const MAX_HEADERS: usize = 128;
/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// How long accepting pauses when the system has no more sockets to give.
const ACCEPT_AGAIN_MS: u64 = 50;

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;
/// The body of the reply to plain HTTP on a port that speaks TLS.
const TLS_REQUIRED: &str =
    r#"{"code":"bad_frame","error":"this port speaks TLS; use https or wss"}"#;

/// A server that listens and does not accept yet.
#[derive(Debug)]
pub struct Server {
    gateway: Arc<Gateway>,
    tls: Option<Arc<Tls>>,
    listeners: Vec<TcpListener>,
}

impl Server {
    /// Listens on all of these addresses, or on none.
    pub async fn bind(gateway: Arc<Gateway>, addresses: &[SocketAddr]) -> io::Result<Self> {
        let mut listeners = Vec::with_capacity(addresses.len());
        for address in addresses {
            let listener = TcpListener::bind(address).await.map_err(|error| {
                io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
            })?;
            listeners.push(listener);
        }
        Ok(Self {
            gateway,
            tls: None,
            listeners,
        })
    }

    /// Speaks TLS on all addresses.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<Tls>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Where it listens, with the ports that the system chose.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Serves until [`Gateway::drain`] is called and connections have wound down, or their time for that is over.
    pub async fn serve(self) {
        let mut accepting = JoinSet::new();
        for listener in self.listeners {
            accepting.spawn(accept(self.gateway.clone(), self.tls.clone(), listener));
        }
        accepting.spawn(history::record(self.gateway.clone()));
        self.gateway.drained().await;
        let limit = Duration::from_millis(self.gateway.options.drain_timeout_ms);
        // Dropping the tasks ends the connections that are left.
        let _ = tokio::time::timeout(limit, accepting.join_all()).await;
    }
}

/// Accepts connections and owns their tasks.
async fn accept(gateway: Arc<Gateway>, tls: Option<Arc<Tls>>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let address = listener.local_addr();
    let is_loopback = address.is_ok_and(|address| address.ip().is_loopback());
    loop {
        let accepted = tokio::select! {
            biased;
            () = gateway.drained() => break,
            Some(_) = connections.join_next() => continue,
            accepted = next(&gateway, &listener) => accepted,
        };
        match accepted {
            Ok((stream, permit)) => {
                connections.spawn(serve_connection(
                    gateway.clone(),
                    tls.clone(),
                    stream,
                    is_loopback,
                    permit,
                ));
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(ACCEPT_AGAIN_MS)).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn next(
    gateway: &Gateway,
    listener: &TcpListener,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = gateway.connections.clone().acquire_owned().await;
    let permit = permit.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, permit))
}

/// Serves one connection: requests first, and a session where one of them asked for it.
async fn serve_connection(
    gateway: Arc<Gateway>,
    tls: Option<Arc<Tls>>,
    stream: TcpStream,
    is_loopback: bool,
    permit: OwnedSemaphorePermit,
) {
    let Some((transport, peer)) = handshake(&gateway, tls, stream).await else {
        return;
    };
    let next_session = NextSession::default();
    let connection = Connection::new(gateway.clone(), is_loopback, peer, next_session.clone());
    answer_requests(&gateway, connection, transport).await;
    if let Some(session) = next_session.take() {
        session.await;
    }
    drop(permit);
}

/// The transport of a connection and its peer. `None` where the TLS handshake fails, which concerns only the client.
async fn handshake(
    gateway: &Gateway,
    tls: Option<Arc<Tls>>,
    stream: TcpStream,
) -> Option<(Transport, Peer)> {
    let address = stream.peer_addr().ok()?;
    let Some(tls) = tls else {
        let subject = None;
        return Some((Transport::Plain(stream), Peer { address, subject }));
    };
    let limit = Duration::from_millis(gateway.options.request_timeout_ms);
    let handshake = async {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first != [TLS_HANDSHAKE] {
            let mut stream = stream;
            let length = TLS_REQUIRED.len();
            let reply = format!(
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\nconnection: close\r\n\r\n{TLS_REQUIRED}"
            );
            write_all(&mut stream, reply.as_bytes()).await?;
            return Ok(None);
        }
        let now_ms = gateway.options.clock.monotonic_ms();
        tls.accept(stream, now_ms).await.map(Some)
    };
    let accepted = tokio::time::timeout(limit, handshake).await;
    match accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) => {
            let stream = stream?;
            let subject = tls::client_subject(&stream);
            let transport = Transport::Tls(Box::new(stream));
            Some((transport, Peer { address, subject }))
        }
        Err(error) => {
            tracing::debug!(peer = %address, %error, "TLS handshake failed");
            None
        }
    }
}

async fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await?;
        bytes = &bytes[written..];
    }
    Ok(())
}

async fn answer_requests(gateway: &Arc<Gateway>, connection: Connection, transport: Transport) {
    let connection = Arc::new(connection);
    let service = service_fn(|request| {
        // In a box of its own, so that a connection that waits for a request has no room for it.
        let answered = Box::pin(http::answer(connection.clone(), request));
        async { Ok::<_, Infallible>(answered.await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(gateway.options.request_timeout_ms))
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(transport), service)
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    // A connection that fails concerns only its client, who knows.
    tokio::select! {
        _ = serving.as_mut() => {}
        () = gateway.drained() => {
            serving.as_mut().graceful_shutdown();
            let _ = serving.await;
        }
    }
}
