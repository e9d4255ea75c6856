//! Making a snapshot: the image's files are read piece by piece and put beside the log, the manifest at the end.

use super::{Manifest, ManifestFile, Snapshots, chain, encode_chunk, piece_bytes};
use crate::shared_log::Unavailable;
use bytes::Bytes;
use prombus_log::image::{Image, ImageFile};
use std::sync::Arc;
use std::time::Duration;

/// How often a chunk is put before making a snapshot is given up, and the pause between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);

/// What a snapshot is made of and for.
pub(crate) struct Making {
    pub(crate) snapshots: Arc<dyn Snapshots>,
    pub(crate) image: Image,
    pub(crate) log_id: u64,
    pub(crate) position: u64,
    pub(crate) max_message_bytes: usize,
}

impl Making {
    /// Makes it durable and returns how many bytes it has.
    pub(crate) async fn run(self) -> Result<u64, Unavailable> {
        let piece_bytes = piece_bytes(self.max_message_bytes);
        let mut source = Source {
            files: self.image.files,
            file: 0,
            at: 0,
        };
        let files = source.files.iter().map(|file| ManifestFile {
            name: file.name.clone(),
            bytes: file.bytes,
            file_bytes: file.file_bytes,
        });
        let mut manifest = Manifest {
            log_id: self.log_id,
            position: self.position,
            chunks: 0,
            checksum: 0,
            files: files.collect(),
        };
        let mut bytes = 0;
        loop {
            // Reading blocks, and one chunk at a time is in memory.
            let read = tokio::task::spawn_blocking(move || {
                let piece = source.next(piece_bytes);
                (source, piece)
            });
            let (read_from, piece) = read.await.map_err(unavailable)?;
            source = read_from;
            let piece = piece.map_err(unavailable)?;
            if piece.is_empty() {
                break;
            }
            manifest.chunks += 1;
            bytes += piece.len() as u64;
            let chunk = encode_chunk(self.position, manifest.chunks, &piece);
            let checksum = super::number(&chunk, chunk.len() - 8).unwrap_or(0);
            manifest.checksum = chain(manifest.checksum, checksum);
            put(&*self.snapshots, self.position, manifest.chunks, chunk).await?;
        }
        let manifest = manifest.encode();
        if manifest.len() > self.max_message_bytes {
            return Err(unavailable("the log has too many files for a snapshot"));
        }
        put(&*self.snapshots, self.position, 0, manifest).await?;
        Ok(bytes)
    }
}

async fn put(
    snapshots: &dyn Snapshots,
    snapshot: u64,
    chunk: u32,
    bytes: Bytes,
) -> Result<(), Unavailable> {
    let mut attempt = 1;
    loop {
        match snapshots.put(snapshot, chunk, bytes.clone()).await {
            Err(_) if attempt < ATTEMPTS => {}
            outcome => return outcome,
        }
        attempt += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

/// The files one behind the other.
struct Source {
    files: Vec<ImageFile>,
    file: usize,
    at: u64,
}

impl Source {
    /// The next bytes; none at the end.
    fn next(&mut self, most: usize) -> std::io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        while piece.len() < most
            && let Some(file) = self.files.get(self.file)
        {
            let wanted = (file.bytes - self.at).min((most - piece.len()) as u64) as usize;
            let begin = piece.len();
            piece.resize(begin + wanted, 0);
            if file.file.read_at(&mut piece[begin..], self.at)? < wanted {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.at += wanted as u64;
            if self.at == file.bytes {
                (self.file, self.at) = (self.file + 1, 0);
            }
        }
        Ok(piece)
    }
}

fn unavailable(error: impl std::fmt::Display) -> Unavailable {
    Unavailable {
        cause: error.to_string().into(),
    }
}
