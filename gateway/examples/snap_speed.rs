//! How many states a server hands out over HTTP in a second, on connections that are kept alive, beside a route that
//! does nothing.
//!
//!     cargo run --release -p prombus-gateway --example snap_speed

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "it measures durations for people to read, prints them, and stops where it cannot go on"
)]

use prombus::{Bus, BusOptions, PublishOptions, Store, SystemClock};
use prombus_gateway::auth::Authenticator;
use prombus_gateway::{Gateway, GatewayOptions, Server};
use prombus_store::file::FileStore;
use prombus_store::memory::MemoryStore;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 32;
const READS_EACH: usize = 3_000;
const KEYS: usize = 10_000;
/// Published behind the keys, so that these lie in sealed segments.
const BALLAST_BYTES: usize = 400 << 20;

#[tokio::main]
async fn main() {
    let memory = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    measure("memory", memory, false).await;
    for (name, is_sealed) in [("file, in memory yet", false), ("file, sealed", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, _) = FileStore::open(folder.path()).expect("a store");
        measure(name, Arc::new(store), is_sealed).await;
    }
}

async fn measure(name: &str, store: Arc<dyn Store>, is_sealed: bool) {
    let bus = Bus::open(store, BusOptions::default()).expect("good options");
    fill(&bus, is_sealed).await;
    let auth = Authenticator::off();
    let gateway = Gateway::new(bus, auth, GatewayOptions::default()).expect("good options");
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(gateway, &[loopback]).await.expect("a port");
    let address = server.addresses().expect("addresses")[0];
    let serving = tokio::spawn(server.serve());
    let nothing = reads_per_second(address, |_| "/livez".to_owned()).await;
    let snap = reads_per_second(address, |number| {
        format!("/snap/process.state/host1:web:{}", number * 7 % KEYS)
    });
    let snap = snap.await;
    println!(
        "{name:20} /snap {snap:9.0}/s   /livez {nothing:9.0}/s   {:.2}",
        snap / nothing
    );
    serving.abort();
}

async fn fill(bus: &Bus, is_sealed: bool) {
    let payload = r#"{"status":"alive","host":"host1","name":"web","cpu_pct":1.5,"mem_mb":120,"last_seen_ts":1}"#;
    let mut batch = bus.batch();
    for number in 0..KEYS {
        let key = format!("host1:web:{number}");
        let key = Some(key.as_str());
        batch.add(
            "process.state",
            payload,
            &PublishOptions {
                key,
                ..PublishOptions::default()
            },
        );
    }
    bus.publish_batch(batch).await;
    let large = format!("\"{}\"", "x".repeat(500_000));
    for _ in 0..BALLAST_BYTES / large.len() * usize::from(is_sealed) {
        let published = bus.publish_text("ballast", &large, &PublishOptions::default());
        published.await.expect("stored");
    }
    bus.store().maintain().await.expect("upkeep");
}

async fn reads_per_second(address: SocketAddr, target: fn(usize) -> String) -> f64 {
    let began = Instant::now();
    let mut clients = Vec::new();
    for client in 0..CONNECTIONS {
        clients.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            let mut reply = vec![0; 4 << 10];
            for number in 0..READS_EACH {
                let target = target(client * READS_EACH + number);
                let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
                stream.write_all(request.as_bytes()).await.expect("sent");
                // Replies are small and come whole.
                let read = stream.read(&mut reply).await.expect("a reply");
                assert!(reply[..read].starts_with(b"HTTP/1.1 200"), "it is there");
            }
        }));
    }
    for client in clients {
        client.await.expect("it reads");
    }
    (CONNECTIONS * READS_EACH) as f64 / began.elapsed().as_secs_f64()
}
