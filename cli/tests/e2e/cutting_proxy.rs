//! A TCP proxy in front of a server that can cut, stall or half-close what goes through it, as a network does.
#![allow(
    clippy::disallowed_methods,
    reason = "it stands between real processes"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How often a connection looks whether something else is to happen to it.
const LOOK: Duration = Duration::from_millis(20);

/// What happens to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Way {
    /// Everything passes.
    Open = 0,
    /// Connections are reset, and new ones are too.
    Cut = 1,
    /// Nothing passes in either direction, and goes on afterwards.
    Stalled = 2,
    /// What is sent to the server passes, what it answers does not; it goes on afterwards.
    HalfOpen = 3,
    /// Everything ends with the proxy.
    Over = 4,
}

/// A proxy in front of one server.
pub(crate) struct CuttingProxy {
    pub(crate) port: u16,
    way: Arc<AtomicU8>,
}

impl CuttingProxy {
    /// Begins to pass on what comes to a port of its own.
    pub(crate) fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let way = Arc::new(AtomicU8::new(Way::Open as u8));
        let shared = way.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                match way_of(&shared) {
                    Way::Over => return,
                    Way::Cut => drop(stream),
                    _ => serve(stream, server_port, &shared),
                }
            }
        });
        Self { port, way }
    }

    /// From now on this happens.
    pub(crate) fn set(&self, way: Way) {
        self.way.store(way as u8, Ordering::SeqCst);
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.set(Way::Over);
        // It accepts once more, and sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn way_of(way: &AtomicU8) -> Way {
    match way.load(Ordering::SeqCst) {
        0 => Way::Open,
        1 => Way::Cut,
        2 => Way::Stalled,
        3 => Way::HalfOpen,
        _ => Way::Over,
    }
}

/// Passes on one connection in both directions.
fn serve(client: TcpStream, server_port: u16, way: &Arc<AtomicU8>) {
    // A server that is down refuses, and so does the proxy.
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)) else {
        return;
    };
    let pairs = [
        (client.try_clone(), server.try_clone(), false),
        (Ok(server), Ok(client), true),
    ];
    for (from, to, is_answer) in pairs {
        let (Ok(from), Ok(to)) = (from, to) else {
            return;
        };
        let way = way.clone();
        std::thread::spawn(move || {
            pass(&from, &to, &way, is_answer);
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

/// Passes on what comes until the connection ends or is cut.
fn pass(mut from: &TcpStream, mut to: &TcpStream, way: &AtomicU8, is_answer: bool) {
    if from.set_read_timeout(Some(LOOK)).is_err() || to.set_nodelay(true).is_err() {
        return;
    }
    let mut buffer = vec![0; 64 << 10];
    loop {
        match way_of(way) {
            Way::Open => {}
            Way::HalfOpen if !is_answer => {}
            Way::HalfOpen | Way::Stalled => {
                std::thread::sleep(LOOK);
                continue;
            }
            Way::Cut | Way::Over => return,
        }
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                if to.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}
