//! The port: accepts connections, speaks HTTP/1.1 on them and hands those that ask for it over to a WebSocket session.

use crate::gateway::Gateway;
use crate::http;
use crate::session::NextSession;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

/// The most headers of a request; one with more is refused.
const MAX_HEADERS: usize = 128;
/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// How long accepting pauses when the system has no more sockets to give.
const ACCEPT_AGAIN_MS: u64 = 50;

/// A server that listens and does not accept yet.
#[derive(Debug)]
pub struct Server {
    gateway: Arc<Gateway>,
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
        Ok(Self { gateway, listeners })
    }

    /// Where it listens, with the ports that the system chose.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// Serves until [`Gateway::drain`] is called and connections have wound down, or their time for that is over.
    pub async fn serve(self) {
        let mut accepting = JoinSet::new();
        for listener in self.listeners {
            accepting.spawn(accept(self.gateway.clone(), listener));
        }
        self.gateway.told_to_stop().await;
        let limit = Duration::from_millis(self.gateway.options.drain_timeout_ms);
        // Whoever is not done by then has had their time: letting go of the tasks ends them.
        let _ = tokio::time::timeout(limit, accepting.join_all()).await;
    }
}

/// Accepts connections and owns their tasks.
async fn accept(gateway: Arc<Gateway>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let address = listener.local_addr();
    let is_loopback = address.is_ok_and(|address| address.ip().is_loopback());
    loop {
        let accepted = tokio::select! {
            biased;
            () = gateway.told_to_stop() => break,
            Some(_) = connections.join_next() => continue,
            accepted = next(&gateway, &listener) => accepted,
        };
        match accepted {
            Ok((stream, permit)) => {
                connections.spawn(serve_connection(
                    gateway.clone(),
                    stream,
                    is_loopback,
                    permit,
                ));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
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
    stream: TcpStream,
    is_loopback: bool,
    permit: OwnedSemaphorePermit,
) {
    let next_session = NextSession::default();
    let routes = http::routes(gateway.clone(), is_loopback);
    answer_requests(&gateway, routes, stream, &next_session).await;
    if let Some(session) = next_session.take() {
        session.await;
    }
    drop(permit);
}

async fn answer_requests(
    gateway: &Arc<Gateway>,
    routes: Router,
    stream: TcpStream,
    next_session: &NextSession,
) {
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(next_session.clone());
        routes.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(gateway.options.request_timeout_ms))
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // A connection that fails concerns only its client, who knows.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = gateway.told_to_stop() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
