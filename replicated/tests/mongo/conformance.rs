//! The conformance suite, unchanged. All checks share a server; each has a database of its own.

use crate::server::Server;
use prombus_replicated::mongo::MongoLog;
use prombus_replicated::{FolderCopy, Options, ReplicatedStore, SharedLog};
use prombus_store::conformance::Harness;
use prombus_store::{ManualClock, Store};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server and where copies are.
struct Lab {
    server: Server,
    folder: tempfile::TempDir,
}

impl Lab {
    fn start() -> Self {
        Self {
            server: Server::start(),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn database(&self) -> InDatabase<'_> {
        InDatabase {
            lab: self,
            url: Mutex::default(),
        }
    }
}

/// Opens a store in a database of its own.
struct InDatabase<'a> {
    lab: &'a Lab,
    url: Mutex<String>,
}

impl InDatabase<'_> {
    async fn store(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let url = self.url.lock().expect("a URL").clone();
        let log = MongoLog::open(&url).await.expect("a log");
        let log_id = log.description().log_id;
        let folder = self.lab.folder.path().join(format!("{log_id:016x}"));
        let (copy, _) = FolderCopy::open(&folder, log_id).expect("a copy");
        let options = Options {
            // A slow machine is no outage.
            patience: Duration::from_secs(30),
            ..Options::default()
        };
        let store = ReplicatedStore::open(Arc::new(log), Arc::new(copy), clock, options).await;
        Arc::new(store.expect("it opens"))
    }
}

impl Harness for InDatabase<'_> {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        *self.url.lock().expect("a URL") = self.lab.server.fresh_url();
        self.store(clock).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        store.close().await.expect("it closes");
        drop(store);
        self.store(clock).await
    }

    fn seeds(&self) -> u64 {
        2
    }
}

prombus_store::conformance_suite!(one_server, Lab::start(), Lab::database);
