//! As much of HTTP as is needed to set a topic, ask for a number and read a stream: one request per connection.

use crate::Outcome;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const READ_BYTES: usize = 256 << 10;
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Asks, and hands the body's pieces to `take` as they come. An answer other than 2xx is an error with its text.
pub async fn stream(
    address: SocketAddr,
    request: &str,
    body: &str,
    mut take: impl FnMut(&[u8]),
) -> Outcome<()> {
    let mut socket = TcpStream::connect(address).await?;
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await?;
    let mut bytes = Vec::with_capacity(READ_BYTES);
    let head_end = loop {
        if let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break at + 4;
        }
        if bytes.len() > MAX_HEAD_BYTES || socket.read_buf(&mut bytes).await? == 0 {
            return Err(format!("{request}: no answer").into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).to_ascii_lowercase();
    bytes.drain(..head_end);
    let is_good = head.starts_with("http/1.1 2");
    let mut chunks = head
        .contains("\r\ntransfer-encoding: chunked")
        .then(Chunks::default);
    let mut refusal = Vec::new();
    loop {
        let mut pass = |piece: &[u8]| {
            if is_good {
                take(piece)
            } else {
                refusal.extend_from_slice(piece)
            }
        };
        match &mut chunks {
            Some(chunks) => chunks.take(&bytes, &mut pass)?,
            None => pass(&bytes),
        }
        bytes.clear();
        if socket.read_buf(&mut bytes).await? == 0 {
            break;
        }
    }
    match (is_good, chunks) {
        (false, _) => Err(format!("{request}: {}", String::from_utf8_lossy(&refusal)).into()),
        (true, Some(chunks)) if !chunks.is_over => Err(format!("{request}: broken off").into()),
        (true, _) => Ok(()),
    }
}

/// Asks, and takes the whole body.
pub async fn ask(address: SocketAddr, request: &str, body: &str) -> Outcome<Vec<u8>> {
    let mut answer = Vec::new();
    stream(address, request, body, |piece| {
        answer.extend_from_slice(piece)
    })
    .await?;
    Ok(answer)
}

/// Takes the chunked encoding off, whatever pieces it comes in.
#[derive(Debug, Default)]
struct Chunks {
    /// What is left of the chunk, with the line end behind it.
    left: usize,
    /// The begun line with the size of the next chunk.
    line: Vec<u8>,
    is_over: bool,
}

impl Chunks {
    const LINE_END_BYTES: usize = 2;

    fn take(&mut self, mut bytes: &[u8], pass: &mut impl FnMut(&[u8])) -> Outcome<()> {
        while !bytes.is_empty() && !self.is_over {
            if self.left > 0 {
                let (piece, rest) = bytes.split_at(self.left.min(bytes.len()));
                let payload = self
                    .left
                    .saturating_sub(Self::LINE_END_BYTES)
                    .min(piece.len());
                pass(&piece[..payload]);
                self.left -= piece.len();
                bytes = rest;
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                return Ok(());
            };
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let size = String::from_utf8_lossy(&self.line).trim().to_owned();
            self.line.clear();
            match usize::from_str_radix(&size, 16)? {
                0 => self.is_over = true,
                size => self.left = size + Self::LINE_END_BYTES,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_however_they_are_cut() {
        let text = b"5\r\nhello\r\n1\r\n,\r\nB\r\n wide world\r\n0\r\n\r\n";
        for size in 1..text.len() {
            let (mut chunks, mut joined) = (Chunks::default(), Vec::new());
            for piece in text.chunks(size) {
                chunks
                    .take(piece, &mut |piece| joined.extend_from_slice(piece))
                    .unwrap();
            }
            assert_eq!(joined, b"hello, wide world", "in pieces of {size}");
            assert!(chunks.is_over);
        }
    }

    #[test]
    fn a_size_that_is_none_is_refused() {
        assert!(Chunks::default().take(b"five\r\n", &mut |_| {}).is_err());
    }
}
