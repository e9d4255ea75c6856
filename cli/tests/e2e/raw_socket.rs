//! A WebSocket by hand, for clients that do not do their part.

use crate::server::{PATIENCE, Server};
use std::io::{Read, Write};
use std::net::TcpStream;

/// A socket behind its handshake.
pub(crate) fn socket(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).expect("it connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let upgrade = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).expect("it is sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    stream
}

/// Sends a text message of up to 64 KiB.
pub(crate) fn send(stream: &mut TcpStream, text: &str) {
    let mut masked = vec![0x81];
    match u8::try_from(text.len()) {
        Ok(short @ ..126) => masked.push(0x80 | short),
        _ => {
            let length = u16::try_from(text.len()).expect("a short message");
            masked.push(0x80 | 126);
            masked.extend(length.to_be_bytes());
        }
    }
    masked.extend([0; 4]);
    masked.extend(text.as_bytes());
    stream.write_all(&masked).expect("it is sent");
}
