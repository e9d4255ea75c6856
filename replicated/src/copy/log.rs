//! A copy in the embedded log. The position is written in the same run as the batches of its message, so after a crash the
//! copy is what it was at some position, and goes on from there.

use super::{LocalCopy, Outcomes, StagedCopy};
use crate::trims::Trim;
use prombus_log::image::Image;
use prombus_log::{
    Applied, FileStore, Files, LogOptions, OpenError, OpenReport, Role, TrackedFiles,
};
use prombus_store::LockExt;
use prombus_store::{Answer, Batch, Change, ManualClock, Store, StoreFailed};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Where the logs of a copy are: the one that is used, and another one while it is made anew.
pub trait Shelf: Send + Sync + 'static {
    /// An empty place.
    fn fresh(&self) -> io::Result<Place>;

    /// Remembers durably that the copy is in this place from now on. Whatever is in others may go.
    fn adopt(&self, place: &str) -> io::Result<()>;
}

/// A place for a log.
pub struct Place {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub files: Arc<dyn Files>,
}

/// A copy in the embedded log, on any files.
#[derive(Clone)]
pub struct LogCopy {
    inner: Arc<Inner>,
}

struct Inner {
    files: Arc<FileStore>,
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    shelf: Box<dyn Shelf>,
    /// The files that the log is in now.
    tracked: Mutex<Arc<TrackedFiles>>,
    has_threads: bool,
}

impl LogCopy {
    /// Opens the log in a place, with these limits.
    pub fn open(
        place: Place,
        shelf: Box<dyn Shelf>,
        log_id: u64,
        options: LogOptions,
        url: String,
    ) -> Result<(Self, OpenReport), OpenError> {
        let clock = Arc::new(ManualClock::at(0));
        let options = LogOptions {
            clock: clock.clone(),
            log_id: Some(log_id),
            role: Role::Copy,
            ..options
        };
        let has_threads = options.threads;
        let tracked = Arc::new(TrackedFiles::new(place.files));
        let (store, report) = FileStore::on_files(tracked.clone(), options, url)?;
        let store = Arc::new(store);
        let inner = Inner {
            store: store.clone(),
            files: store,
            clock,
            shelf,
            tracked: Mutex::new(tracked),
            has_threads,
        };
        let copy = Self {
            inner: Arc::new(inner),
        };
        Ok((copy, report))
    }
}

impl Inner {
    fn tracked(&self) -> Arc<TrackedFiles> {
        let tracked = self.tracked.guard();
        tracked.clone()
    }

    fn append(
        &self,
        batches: &[Batch],
        now_ms: u64,
        position: u64,
    ) -> Result<Applied, StoreFailed> {
        self.clock.set(now_ms);
        let log = self.files.log();
        let applied = log.append_all(batches, now_ms, position);
        if !self.has_threads {
            log.write_now();
        }
        applied.map_err(failed)
    }

    /// Does work that blocks on a thread for that.
    fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, StoreFailed> + Send + 'static,
    ) -> Answer<T, StoreFailed> {
        let inner = self.clone();
        Box::pin(async move {
            let worked = tokio::task::spawn_blocking(move || work(&inner)).await;
            worked.unwrap_or_else(|error| Err(failed(error)))
        })
    }
}

impl LocalCopy for LogCopy {
    fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    fn apply(
        &self,
        batches: Vec<Batch>,
        now_ms: u64,
        position: u64,
    ) -> Answer<Outcomes, StoreFailed> {
        let inner = self.inner.clone();
        Box::pin(async move {
            // Looking for client ids and keys may need the disk. Without that it takes less than handing on this thread's tasks.
            let looks_up =
                |batch: &Batch| batch.has_client_ids() || batch.has_expected_key_positions();
            let applied = if batches.iter().any(looks_up) {
                in_place(|| inner.append(&batches, now_ms, position))
            } else {
                inner.append(&batches, now_ms, position)
            }?;
            applied.commit.await.map_err(failed)?;
            Ok(applied.outcomes)
        })
    }

    fn compact(&self, now_ms: u64) -> Answer<(), StoreFailed> {
        self.inner.blocking(move |inner| {
            inner.clock.set(now_ms);
            inner.files.log().compact_copy().map_err(failed)
        })
    }

    fn due_trims(&self, now_ms: u64) -> Answer<Vec<Trim>, StoreFailed> {
        self.inner.blocking(move |inner| {
            let log = inner.files.log();
            let due = log.due_trims(now_ms).into_iter();
            let trims = due.filter_map(|change| {
                let Change::Trim { topic, first_seq } = change else {
                    return None;
                };
                let incarnation = log.incarnation(&topic)?;
                Some(Trim {
                    topic,
                    incarnation,
                    first_seq,
                })
            });
            Ok(trims.collect())
        })
    }

    fn can_snapshot(&self) -> bool {
        true
    }

    fn image(&self) -> Answer<Option<Image>, StoreFailed> {
        self.inner.blocking(|inner| {
            let image = Image::open(&inner.tracked()).map_err(failed)?;
            Ok(Some(image))
        })
    }

    fn stage(&self) -> io::Result<Option<Box<dyn StagedCopy>>> {
        let place = self.inner.shelf.fresh()?;
        let copy = self.inner.clone();
        Ok(Some(Box::new(StagedLog { copy, place })))
    }
}

/// A log beside the one of the copy.
struct StagedLog {
    copy: Arc<Inner>,
    place: Place,
}

/// Why a staged log does not take the place of the other.
#[derive(Debug, thiserror::Error)]
enum Unfit {
    #[error("{0}")]
    Open(#[from] OpenError),
    #[error("it is damaged")]
    Damaged,
    #[error("it is at position {found}, not at {wanted}")]
    Position { found: u64, wanted: u64 },
}

impl StagedCopy for StagedLog {
    fn files(&self) -> &Arc<dyn Files> {
        &self.place.files
    }

    fn adopt(self: Box<Self>, wanted: u64) -> Result<(), StoreFailed> {
        let tracked = Arc::new(TrackedFiles::new(self.place.files.clone()));
        let replaced = self
            .copy
            .files
            .replace_files(tracked.clone(), |log, report| {
                let found = log.position().unwrap_or(0);
                if !report.damage.is_empty() {
                    return Err(Unfit::Damaged);
                }
                if found == wanted {
                    Ok(())
                } else {
                    Err(Unfit::Position { found, wanted })
                }
            });
        replaced.map_err(failed)?;
        *self.copy.tracked.guard() = tracked;
        self.copy.shelf.adopt(&self.place.name).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> StoreFailed {
    StoreFailed {
        cause: error.to_string().into(),
    }
}

/// Does work that may block, while another thread takes over the tasks of this one where the runtime has one.
fn in_place<T>(work: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match runtime {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
