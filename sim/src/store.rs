//! The store of a run: the memory store, or the file store on files that can lose power. Every answer comes after a
//! random virtual delay, and what a read returns may be from before or after the delay.

use crate::clock::SimClock;
use fastrand::Rng;
use prombus_log::fault::FaultFiles;
use prombus_log::{FileStore, Files, LogOptions};
use prombus_store::LockExt;
use prombus_store::memory::{DEFAULT_MAX_BYTES, MemoryStore};
use prombus_store::{
    Answer, Batch, CommitError, Find, Keyed, Page, ReadError, ReadFrom, ReadLimit, Receipt, Store,
    Wrapper,
};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// Sets the ids of a run apart from nothing but its clock and commits.
const STORE_NUMBER: u64 = 7;
/// The longest that an answer is held back.
const MAX_DELAY_MS: u64 = 12;

/// Which store a run is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The memory store.
    Memory,
    /// The file store on files that lose power.
    File,
}

/// What survives a life.
pub(crate) enum Disk {
    Memory(Arc<MemoryStore>),
    File(Arc<FaultFiles>),
}

/// The store as one life sees it.
pub(crate) struct SimStore {
    inner: Arc<Inner>,
    random: Mutex<Rng>,
}

enum Inner {
    Memory(Arc<MemoryStore>),
    File(FileStore),
}

impl Disk {
    pub(crate) fn new(kind: Kind, clock: &Arc<SimClock>) -> Self {
        match kind {
            Kind::Memory => Self::Memory(Arc::new(MemoryStore::numbered(
                clock.clone(),
                DEFAULT_MAX_BYTES,
                STORE_NUMBER,
            ))),
            Kind::File => Self::File(Arc::new(FaultFiles::new())),
        }
    }

    /// Opens the store for a life.
    pub(crate) fn open(&self, clock: &Arc<SimClock>, seed: u64) -> Result<SimStore, String> {
        let inner = match self {
            Self::Memory(store) => Inner::Memory(store.clone()),
            Self::File(files) => {
                let files: Arc<dyn Files> = Arc::new(files.another_handle());
                let options = LogOptions {
                    clock: clock.clone(),
                    log_id: Some(STORE_NUMBER),
                    // Every step of the log happens in the call that asks for it.
                    threads: false,
                    ..LogOptions::default()
                };
                let opened = FileStore::on_files(files, options, "file:sim".into());
                Inner::File(opened.map_err(|error| error.to_string())?.0)
            }
        };
        Ok(SimStore {
            inner: Arc::new(inner),
            random: Mutex::new(Rng::with_seed(seed)),
        })
    }

    /// The power goes.
    pub(crate) fn crash(&mut self, seed: u64) {
        if let Self::File(files) = self {
            *self = Self::File(Arc::new(files.crash(seed)));
        }
    }
}

impl Inner {
    fn store(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => &**store,
            Self::File(store) => store,
        }
    }

    /// Has the log do what was asked of it.
    fn settle(&self) {
        if let Self::File(store) = self {
            store.log().commit_now();
        }
    }
}

impl SimStore {
    /// Answers with what `ask` finds, which happens before or after a delay.
    fn later<T: Send + 'static, E: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Store) -> Answer<T, E> + Send + 'static,
    ) -> Answer<T, E> {
        let (delay, early) = {
            let mut random = self.random();
            (delay(&mut random), random.bool())
        };
        let inner = self.inner.clone();
        let asked = move || {
            inner.settle();
            block_on(ask(inner.store()))
        };
        if early {
            let answer = asked();
            Box::pin(async move {
                rest(delay).await;
                answer
            })
        } else {
            Box::pin(async move {
                rest(delay).await;
                asked()
            })
        }
    }

    fn random(&self) -> MutexGuard<'_, Rng> {
        self.random.guard()
    }
}

impl Wrapper for SimStore {
    fn inner(&self) -> &dyn Store {
        self.inner.store()
    }

    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        // The order of commits is that of the calls, so only the answer is delayed.
        let answer = self.inner.store().commit(batch);
        self.inner.settle();
        let receipt = block_on(answer);
        let delay = delay(&mut self.random());
        Box::pin(async move {
            rest(delay).await;
            receipt
        })
    }

    fn read(
        &self,
        topic: &Arc<str>,
        from: ReadFrom<'_>,
        limit: ReadLimit,
    ) -> Answer<Page, ReadError> {
        let ReadFrom::Seq(from_seq) = from else {
            return self.inner.store().read(topic, from, limit);
        };
        let topic = topic.clone();
        self.later(move |store| store.read(&topic, ReadFrom::Seq(from_seq), limit))
    }

    fn find(&self, topic: &Arc<str>, what: Find<'_>) -> Answer<Option<u64>, ReadError> {
        let topic = topic.clone();
        match what {
            Find::Id(id) => {
                let id = id.to_owned();
                self.later(move |store| store.find(&topic, Find::Id(&id)))
            }
            Find::Ts(ts) => self.later(move |store| store.find(&topic, Find::Ts(ts))),
        }
    }

    fn get(&self, key: &str) -> Answer<Option<Keyed>, ReadError> {
        let key = key.to_owned();
        self.later(move |store| store.get(&key))
    }

    fn list(&self, prefix: &str) -> Answer<Vec<(Arc<str>, Keyed)>, ReadError> {
        let prefix = prefix.to_owned();
        self.later(move |store| store.list(&prefix))
    }

    fn maintain(&self) -> Answer<(), CommitError> {
        let maintained = match &*self.inner {
            Inner::Memory(store) => block_on(store.maintain()),
            Inner::File(store) => {
                // What the store would wait for is committed by hand here.
                let maintained = store.log().maintain();
                store.log().commit_now();
                let failed = |error: std::io::Error| prombus_store::StoreFailed {
                    cause: error.to_string().into(),
                };
                maintained.map_err(|error| failed(error).into())
            }
        };
        Box::pin(async { maintained })
    }

    /// The memory store stays open for the next life.
    fn close(&self) -> Answer<(), CommitError> {
        match &*self.inner {
            Inner::Memory(_) => Box::pin(async { Ok(()) }),
            Inner::File(store) => {
                let closed = block_on(store.close());
                Box::pin(async { closed })
            }
        }
    }
}

fn delay(random: &mut Rng) -> Option<u64> {
    match random.u8(0..100) {
        0..55 => None,
        55..80 => Some(0),
        _ => Some(random.u64(1..=MAX_DELAY_MS)),
    }
}

async fn rest(delay: Option<u64>) {
    match delay {
        None => {}
        Some(0) => tokio::task::yield_now().await,
        Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread, so that virtual time stands still meanwhile.
fn block_on<T>(answer: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut answer = pin!(tokio::task::unconstrained(answer));
    loop {
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
            return answer;
        }
        std::thread::park();
    }
}
