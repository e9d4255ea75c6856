//! The conformance suite, unchanged. All checks of a test share its servers; each has a stream of its own.

use crate::servers::Servers;
use prombus_replicated::nats::{JetStreamLog, NatsUrl};
use prombus_replicated::{FolderCopy, Options, ReplicatedStore};
use prombus_store::conformance::Harness;
use prombus_store::{ManualClock, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Servers and where copies are.
struct Lab {
    servers: Servers,
    replicas: usize,
    folder: tempfile::TempDir,
    streams: AtomicU64,
}

impl Lab {
    fn start(servers: usize) -> Self {
        Self {
            servers: Servers::start(servers, ""),
            replicas: servers,
            folder: tempfile::tempdir().expect("a folder"),
            streams: AtomicU64::new(0),
        }
    }

    fn stream(&self) -> OnStream<'_> {
        let number = self.streams.load(Ordering::Relaxed);
        OnStream {
            lab: self,
            number: AtomicU64::new(number),
        }
    }
}

/// Opens a store on a stream of its own.
struct OnStream<'a> {
    lab: &'a Lab,
    number: AtomicU64,
}

impl OnStream<'_> {
    fn url(&self) -> (NatsUrl, PathBuf) {
        let number = self.number.load(Ordering::Relaxed);
        let (hosts, replicas) = (self.lab.servers.hosts(), self.lab.replicas);
        let url = format!("nats://{hosts}/check-{number}?replicas={replicas}");
        let folder = self.lab.folder.path().join(number.to_string());
        (NatsUrl::parse(&url).expect("a URL"), folder)
    }

    async fn store(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let (url, folder) = self.url();
        let log = JetStreamLog::open(&url, 77).await.expect("a stream");
        let (copy, _) = FolderCopy::open(&folder, 77).expect("a copy");
        let options = Options {
            // A slow machine is no outage.
            patience: Duration::from_secs(30),
            ..Options::default()
        };
        let store = ReplicatedStore::open(Arc::new(log), Arc::new(copy), clock, options).await;
        Arc::new(store.expect("it opens"))
    }
}

impl Harness for OnStream<'_> {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let number = self.lab.streams.fetch_add(1, Ordering::Relaxed);
        self.number.store(number, Ordering::Relaxed);
        self.store(clock).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        store.close().await.expect("it closes");
        drop(store);
        self.store(clock).await
    }

    fn seeds(&self) -> u64 {
        3
    }
}

prombus_store::conformance_suite!(one_server, Lab::start(1), Lab::stream);
prombus_store::conformance_suite!(three_servers, Lab::start(3), Lab::stream);
