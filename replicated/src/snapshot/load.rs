//! Loading a snapshot: a copy is made beside the one in use, checked chunk by chunk, and takes its place when it is whole.

use super::{Manifest, Snapshots, chain, decode_chunk};
use crate::copy::LocalCopy;
use crate::shared_log::{Bounds, SharedLog, Unavailable};
use bytes::Bytes;
use prombus_log::{File, Files};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Chunks that are fetched at a time.
const FETCHED_AT_ONCE: usize = 8;

/// Why no snapshot was loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("no snapshot covers what is missing")]
    None,
    #[error("this copy cannot be made anew while it is used")]
    Unsupported,
    #[error("snapshot {snapshot} lacks chunk {chunk}, or it is damaged")]
    Damaged { snapshot: u64, chunk: u32 },
    #[error("snapshot {snapshot} cannot be kept: {cause}")]
    Copy { snapshot: u64, cause: Arc<str> },
    #[error("{0}")]
    Unavailable(#[from] Unavailable),
}

/// Replaces the copy by the newest snapshot from which the log can be followed, and returns the snapshot's position.
pub(crate) async fn load(
    log: Arc<dyn SharedLog>,
    copy: Arc<dyn LocalCopy>,
    bounds: Bounds,
) -> Result<u64, LoadError> {
    let snapshots = log.snapshots().ok_or(LoadError::None)?;
    let follows = |position: &u64| (bounds.first.saturating_sub(1)..).contains(position);
    let mut listed = snapshots.list().await?;
    loop {
        listed.retain(follows);
        match load_newest(&log, &snapshots, &copy, listed.clone()).await {
            Err(LoadError::Damaged { .. }) => {}
            loaded => return loaded,
        }
        // Another one may have taken its place while it was loaded.
        let mut now = snapshots.list().await?;
        now.retain(follows);
        if now.last() <= listed.last() {
            return load_newest(&log, &snapshots, &copy, now).await;
        }
        listed = now;
    }
}

async fn load_newest(
    log: &Arc<dyn SharedLog>,
    snapshots: &Arc<dyn Snapshots>,
    copy: &Arc<dyn LocalCopy>,
    mut listed: Vec<u64>,
) -> Result<u64, LoadError> {
    let mut error = LoadError::None;
    while let Some(snapshot) = listed.pop() {
        match load_one(snapshots, copy, snapshot, log.description().log_id).await {
            Ok(()) => return Ok(snapshot),
            Err(LoadError::Unsupported) => return Err(LoadError::Unsupported),
            Err(failed) => {
                tracing::warn!(snapshot, error = %failed, "a snapshot cannot be loaded");
                // The newest one says most.
                if error == LoadError::None {
                    error = failed;
                }
            }
        }
    }
    Err(error)
}

/// Replaces the copy by one that nothing was applied to.
pub(crate) async fn load_nothing(copy: Arc<dyn LocalCopy>) -> Result<u64, LoadError> {
    let staged = copy.stage().map_err(|error| kept(0, &error))?;
    let staged = staged.ok_or(LoadError::Unsupported)?;
    let adopted = tokio::task::spawn_blocking(move || staged.adopt(0)).await;
    let adopted = adopted.map_err(|error| kept(0, &error))?;
    adopted.map_err(|error| kept(0, &error.cause))?;
    Ok(0)
}

async fn load_one(
    snapshots: &Arc<dyn Snapshots>,
    copy: &Arc<dyn LocalCopy>,
    snapshot: u64,
    log_id: u64,
) -> Result<(), LoadError> {
    let damaged = |chunk: u32| LoadError::Damaged { snapshot, chunk };
    let manifest = snapshots.get(snapshot, 0).await?.ok_or(damaged(0))?;
    let manifest = Manifest::decode(&manifest).ok_or(damaged(0))?;
    if manifest.position != snapshot || manifest.log_id != log_id {
        return Err(damaged(0));
    }
    let staged = copy.stage().map_err(|error| kept(snapshot, &error))?;
    let staged = staged.ok_or(LoadError::Unsupported)?;
    let mut target = Target::new(staged.files().clone(), manifest.clone());
    let mut fetched = Fetched::new(snapshots.clone(), snapshot, manifest.chunks);
    let mut checksum = 0;
    for chunk in 1..=manifest.chunks {
        let bytes = fetched.next().await?.ok_or(damaged(chunk))?;
        let (piece, of_chunk) = decode_chunk(snapshot, chunk, &bytes).ok_or(damaged(chunk))?;
        checksum = chain(checksum, of_chunk);
        target = write(target, piece, snapshot).await?;
    }
    if checksum != manifest.checksum {
        return Err(damaged(0));
    }
    let adopted = tokio::task::spawn_blocking(move || {
        target.finish().map_err(|error| kept(snapshot, &error))?;
        let adopted = staged.adopt(snapshot);
        adopted.map_err(|error| kept(snapshot, &error.cause))
    });
    adopted.await.map_err(|error| kept(snapshot, &error))?
}

async fn write(mut target: Target, piece: Bytes, snapshot: u64) -> Result<Target, LoadError> {
    let written = tokio::task::spawn_blocking(move || {
        let written = target.write(&piece);
        written.map(|()| target)
    });
    let written = written.await.map_err(|error| kept(snapshot, &error))?;
    written.map_err(|error| kept(snapshot, &error))
}

fn kept(snapshot: u64, error: &dyn std::fmt::Display) -> LoadError {
    LoadError::Copy {
        snapshot,
        cause: error.to_string().into(),
    }
}

/// Chunks in their order, some of them ahead.
struct Fetched {
    snapshots: Arc<dyn Snapshots>,
    snapshot: u64,
    next: u32,
    last: u32,
    ahead: VecDeque<JoinHandle<Result<Option<Bytes>, Unavailable>>>,
}

impl Fetched {
    fn new(snapshots: Arc<dyn Snapshots>, snapshot: u64, last: u32) -> Self {
        Self {
            snapshots,
            snapshot,
            next: 1,
            last,
            ahead: VecDeque::new(),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Unavailable> {
        while self.ahead.len() < FETCHED_AT_ONCE && self.next <= self.last {
            let chunk = self.snapshots.get(self.snapshot, self.next);
            self.ahead.push_back(tokio::spawn(chunk));
            self.next += 1;
        }
        let Some(first) = self.ahead.pop_front() else {
            return Ok(None);
        };
        first.await.unwrap_or_else(|error| {
            Err(Unavailable {
                cause: error.to_string().into(),
            })
        })
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        self.ahead.iter().for_each(JoinHandle::abort);
    }
}

/// The files that chunks are written to, one behind the other.
struct Target {
    files: Arc<dyn Files>,
    manifest: Manifest,
    file: usize,
    at: u64,
    open: Option<Arc<dyn File>>,
}

impl Target {
    fn new(files: Arc<dyn Files>, manifest: Manifest) -> Self {
        Self {
            files,
            manifest,
            file: 0,
            at: 0,
            open: None,
        }
    }

    fn write(&mut self, mut piece: &[u8]) -> io::Result<()> {
        while !piece.is_empty() {
            let left = self.open_next()?.ok_or(io::ErrorKind::InvalidData)?;
            let (now, rest) = piece.split_at(piece.len().min(left as usize));
            if let Some(file) = &self.open {
                file.write_at(now, self.at)?;
            }
            self.at += now.len() as u64;
            piece = rest;
        }
        Ok(())
    }

    /// Goes on to the next file where this one is full, and says how much fits; `None` behind the last.
    fn open_next(&mut self) -> io::Result<Option<u64>> {
        while let Some(next) = self.manifest.files.get(self.file) {
            let file = match &self.open {
                Some(file) => file.clone(),
                None => {
                    let is_plain = prombus_log::image::is_of_log(&next.name)
                        && !next.name.contains(['/', '\\']);
                    if !is_plain {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    self.files.create(&next.name)?
                }
            };
            if self.at < next.bytes {
                self.open = Some(file);
                return Ok(Some(next.bytes - self.at));
            }
            file.truncate(next.file_bytes)?;
            file.sync()?;
            (self.open, self.file, self.at) = (None, self.file + 1, 0);
        }
        Ok(None)
    }

    /// Makes everything durable.
    fn finish(mut self) -> io::Result<()> {
        match self.open_next()? {
            None => self.files.sync_names(),
            Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
