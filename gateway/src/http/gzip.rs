//! Compression of a streamed body, piece by piece.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// A gzip stream whose output is taken as it comes.
pub(super) struct Gzip(GzEncoder<Vec<u8>>);

impl Gzip {
    pub(super) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Compresses a piece and gives what has come out so far. It runs where it may take its time.
    pub(super) async fn compress(mut self, piece: Vec<u8>) -> io::Result<(Self, Vec<u8>)> {
        let compressing = tokio::task::spawn_blocking(move || {
            self.0.write_all(&piece)?;
            let out = std::mem::take(self.0.get_mut());
            Ok((self, out))
        });
        compressing.await.map_err(io::Error::other)?
    }

    /// The end of the stream.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        self.0.finish()
    }
}

/// Whether a client takes gzip: it names it, and not with a weight of nothing.
pub(super) fn is_accepted(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|part| {
        let mut words = part.split(';').map(str::trim);
        let is_gzip = words
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_unwanted = words.any(|word| {
            let weight = word
                .strip_prefix("q=")
                .and_then(|weight| weight.parse().ok());
            weight.is_some_and(|weight: f32| weight <= 0.0)
        });
        is_gzip && !is_unwanted
    })
}

#[cfg(test)]
mod tests {
    use super::is_accepted;

    #[test]
    fn gzip_is_taken_where_it_is_wanted() {
        for wanted in ["gzip", "br, GZIP;q=0.5", "deflate;q=0, gzip", "gzip; q=1.0"] {
            assert!(is_accepted(wanted), "{wanted}");
        }
        for unwanted in ["", "br", "gzip;q=0", "gzip;q=0.0, br", "x-gzip", "identity"] {
            assert!(!is_accepted(unwanted), "{unwanted}");
        }
    }
}
