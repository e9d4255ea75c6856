//! The conformance suite on a simulated shared log: one node, one node on a log that loses and repeats, and a pair of
//! which one is written and the other is read.
#![cfg(test)]

use prombus_replicated::simulated::{Fault, SimulatedLog};
use prombus_replicated::{MemoryCopy, Options, ReplicatedStore};
use prombus_store::conformance::Harness;
use prombus_store::{
    Answer, Batch, CommitError, Keyed, ManualClock, ReadError, Receipt, Store, Wrapper,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Opens stores on a log of its own. To open one again is to apply the log to an empty copy.
struct OnSimulated {
    log: Mutex<SimulatedLog>,
    has_faults: bool,
    is_pair: bool,
}

impl OnSimulated {
    fn new(has_faults: bool, is_pair: bool) -> Self {
        Self {
            log: Mutex::new(SimulatedLog::new(0)),
            has_faults,
            is_pair,
        }
    }

    async fn node(&self, clock: Arc<ManualClock>) -> Arc<ReplicatedStore> {
        let log = self.log.lock().expect("no panic").clone();
        let copy = Arc::new(MemoryCopy::new(7));
        let options = Options {
            // A slow machine is no outage.
            patience: Duration::from_secs(30),
            ..Options::default()
        };
        let store = ReplicatedStore::open(Arc::new(log), copy, clock, options);
        Arc::new(store.await.expect("it opens"))
    }

    async fn nodes(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let written = self.node(clock.clone()).await;
        if !self.is_pair {
            return written;
        }
        let read = self.node(clock).await;
        Arc::new(Pair { written, read })
    }
}

impl Harness for OnSimulated {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        static LOGS: AtomicU64 = AtomicU64::new(1);
        let log = SimulatedLog::with_max_message_bytes(LOGS.fetch_add(1, Ordering::Relaxed), 2000);
        if self.has_faults {
            use Fault::{Late, LostAnswer, LostMessage, Twice};
            let faults = [LostAnswer, Twice, Late, LostMessage];
            log.plan((0..200).map(|at| match at % 23 {
                7 => faults[at / 23 % 4],
                _ => Fault::None,
            }));
        }
        *self.log.lock().expect("no panic") = log;
        self.nodes(clock).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        store.close().await.expect("it closes");
        self.nodes(clock).await
    }
}

/// Two nodes: commits go to one, and everything is read from the other once it has what was committed.
struct Pair {
    written: Arc<ReplicatedStore>,
    read: Arc<ReplicatedStore>,
}

impl Pair {
    fn caught_up<T: Send + 'static, E: Send + 'static>(
        &self,
        answer: Answer<T, E>,
    ) -> Answer<T, E> {
        let read = self.read.clone();
        Box::pin(async move {
            let answer = answer.await;
            read.barrier().await.expect("the log answers");
            answer
        })
    }
}

impl Wrapper for Pair {
    fn inner(&self) -> &dyn Store {
        &*self.read
    }

    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        self.caught_up(self.written.commit(batch))
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        let committed = self.caught_up(self.written.get(key));
        let (read, key) = (self.read.clone(), key.to_owned());
        Box::pin(async move {
            committed.await?;
            read.get(&key).await
        })
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        let committed = self.caught_up(self.written.list(prefix));
        let (read, prefix) = (self.read.clone(), prefix.to_owned());
        Box::pin(async move {
            committed.await?;
            read.list(&prefix).await
        })
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        self.caught_up(self.written.maintain())
    }

    fn close(&self) -> Answer<(), CommitError> {
        let (written, read) = (self.written.close(), self.read.close());
        Box::pin(async move {
            written.await?;
            read.await
        })
    }
}

mod one_node {
    use super::*;
    prombus_store::conformance_suite!(OnSimulated::new(false, false));
}

mod faulty_log {
    use super::*;
    prombus_store::conformance_suite!(OnSimulated::new(true, false));
}

mod pair {
    use super::*;
    prombus_store::conformance_suite!(OnSimulated::new(false, true));
}
