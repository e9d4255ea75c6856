//! The store in a folder keeps the contract: with ordinary segments, and with segments so small that everything is sealed,
//! rewritten and merged all the time.

use prombus_log::{FileStore, LogOptions};
use prombus_store::conformance::Harness;
use prombus_store::{ManualClock, Store};
use std::sync::Arc;

/// A folder that is gone with the test.
struct InFolder {
    folder: tempfile::TempDir,
    segment_bytes: u64,
}

impl InFolder {
    fn with_segments_of(segment_bytes: u64) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            segment_bytes,
        }
    }
}

impl Harness for InFolder {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let options = LogOptions {
            segment_bytes: self.segment_bytes,
            tail_cache_bytes: self.segment_bytes as usize / 4,
            // Maintenance happens when a check asks for it, so that two looks in a row see the same.
            maintain_interval_ms: u64::MAX,
            ..LogOptions::default()
        };
        let opened = FileStore::open_with(self.folder.path(), clock, options);
        let (store, report) = opened.expect("the folder opens");
        assert_eq!(report.damage, Vec::<String>::new());
        Arc::new(store)
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        store.close().await.expect("the store closes");
        drop(store);
        self.open(clock).await
    }
}

mod ordinary_segments {
    use super::*;
    prombus_store::conformance_suite!(InFolder::with_segments_of(64 << 20));
}

mod tiny_segments {
    use super::*;
    prombus_store::conformance_suite!(InFolder::with_segments_of(4 << 10));
}
