//! Where key sets come from: a file, or whatever the caller can fetch.

use super::error::KeysUnavailable;
use std::fs::File;
use std::future::Future;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::pin::Pin;

/// The largest key set that is read.
pub(super) const MAX_KEY_SET_BYTES: usize = 1 << 20;

/// The text of a key set, when it is there.
pub type Fetched = Pin<Box<dyn Future<Output = Result<Vec<u8>, KeysUnavailable>> + Send>>;

/// Gets the text of a JSON Web Key Set. A function that returns [`Fetched`] is one too.
pub trait KeySource: Send + Sync + 'static {
    /// Fetches the current set. Called repeatedly, never concurrently, with a timeout.
    fn fetch(&self) -> Fetched;
}

impl<F> KeySource for F
where
    F: Fn() -> Fetched + Send + Sync + 'static,
{
    fn fetch(&self) -> Fetched {
        self()
    }
}

/// A key set in a file. Put a new one in its place to rotate keys.
#[derive(Debug, Clone)]
pub struct FileKeys {
    path: PathBuf,
}

impl FileKeys {
    /// The set in this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl KeySource for FileKeys {
    fn fetch(&self) -> Fetched {
        let path = self.path.clone();
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || read(&path)).await {
                Ok(text) => text,
                Err(_) => Err(KeysUnavailable {
                    reason: "reading the file was cancelled".to_owned(),
                }),
            }
        })
    }
}

/// Reads one byte more than is allowed, so that the reader of the set sees that it is too large.
fn read(path: &Path) -> Result<Vec<u8>, KeysUnavailable> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| {
            file.take(MAX_KEY_SET_BYTES as u64 + 1)
                .read_to_end(&mut text)
        })
        .map_err(|error| KeysUnavailable {
            reason: format!("{}: {error}", path.display()),
        })?;
    Ok(text)
}
