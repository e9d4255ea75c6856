//! A server to test and a client that speaks the protocol by hand.

use prombus::{Bus, BusOptions, Store, SystemClock};
use prombus_gateway::auth::Authenticator;
use prombus_gateway::{Gateway, GatewayOptions, Server};
use prombus_store::memory::MemoryStore;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// The longest that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const TEXT: u8 = 0x1;
pub(crate) const BINARY: u8 = 0x2;
pub(crate) const CLOSE: u8 = 0x8;
pub(crate) const PING: u8 = 0x9;
pub(crate) const PONG: u8 = 0xA;

/// A server that runs in this process.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) serving: JoinHandle<()>,
}

/// A client. What it reads is kept until it is asked for.
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
    frames: VecDeque<Value>,
    /// EVENT frames that came while something else was waited for.
    pub(crate) events: VecDeque<Value>,
    /// How many messages came.
    pub(crate) messages: usize,
}

/// A message from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Text(String),
    Ping,
    Pong(Vec<u8>),
    Close(Option<u16>, String),
    End,
}

/// Serves a memory store without auth.
pub(crate) async fn serve() -> Served {
    serve_with(Authenticator::off(), GatewayOptions::default()).await
}

pub(crate) async fn serve_with(auth: Authenticator, options: GatewayOptions) -> Served {
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    serve_store(store, BusOptions::default(), auth, options).await
}

pub(crate) async fn serve_store(
    store: Arc<dyn Store>,
    bus_options: BusOptions,
    auth: Authenticator,
    options: GatewayOptions,
) -> Served {
    let bus = Bus::open(store, bus_options).expect("the options are good");
    let gateway = Gateway::new(bus, auth, options).expect("the options are good");
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(gateway.clone(), &[any_port]).await;
    let server = server.expect("a port is free");
    let address = server.addresses().expect("an address")[0];
    let serving = tokio::spawn(server.serve());
    Served {
        address,
        gateway,
        serving,
    }
}

impl Served {
    pub(crate) async fn connect(&self) -> Socket {
        Socket::connect(self.address, "/ws", "").await.expect("101")
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Gateway) -> bool) {
        for _ in 0..2_000 {
            if is_so(&self.gateway) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it never came to be that {what}");
    }

    /// A number out of the metrics.
    pub(crate) fn metric(&self, line: &str) -> Option<f64> {
        let text = self.gateway.metrics().render();
        let line = text.lines().find_map(|found| found.strip_prefix(line))?;
        line.trim().parse().ok()
    }
}

impl Socket {
    /// Connects; the whole answer where it is not 101.
    pub(crate) async fn connect(
        address: SocketAddr,
        path: &str,
        headers: &str,
    ) -> Result<Self, String> {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
        );
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        let mut socket = Self {
            stream,
            read: Vec::new(),
            frames: VecDeque::new(),
            events: VecDeque::new(),
            messages: 0,
        };
        let head = loop {
            let end = socket.read.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                break socket.read.drain(..end + 4).collect::<Vec<u8>>();
            }
            assert!(socket.fill().await, "the connection ended in the head");
        };
        let head = String::from_utf8(head).expect("text");
        if head.starts_with("HTTP/1.1 101") {
            assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
            return Ok(socket);
        }
        while !socket.read.ends_with(b"}") && socket.fill().await {}
        Err(head + &String::from_utf8_lossy(&socket.read))
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.send_frame(0x80 | TEXT, text.as_bytes()).await;
    }

    /// Sends a frame whose first byte is given, masked.
    pub(crate) async fn send_frame(&mut self, first: u8, payload: &[u8]) {
        self.send_raw(&masked(first, payload)).await;
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        let sending = tokio::time::timeout(PATIENCE, self.stream.write_all(bytes));
        sending
            .await
            .expect("the server reads")
            .expect("it is there");
    }

    /// Sends a frame and returns its reply. Events that come before it are kept.
    pub(crate) async fn ask(&mut self, frame: Value) -> Value {
        self.send(frame).await;
        self.reply().await
    }

    /// The next OK or ERR.
    pub(crate) async fn reply(&mut self) -> Value {
        loop {
            let frame = self.frame().await;
            match frame["op"].as_str() {
                Some("EVENT") => self.events.push_back(frame),
                _ => return frame,
            }
        }
    }

    /// The next EVENT. Nothing else may come before it.
    pub(crate) async fn event(&mut self) -> Value {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        let frame = self.frame().await;
        assert_eq!(frame["op"], "EVENT", "{frame}");
        frame
    }

    /// Asserts that nothing comes for a while.
    pub(crate) async fn silence(&mut self, for_ms: u64) {
        assert_eq!(self.events.pop_front(), None);
        let waiting = tokio::time::timeout(Duration::from_millis(for_ms), self.frame());
        if let Ok(frame) = waiting.await {
            panic!("nothing should come, but {frame} did");
        }
    }

    /// The next frame.
    pub(crate) async fn frame(&mut self) -> Value {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return frame;
            }
            match self.message().await {
                Message::Text(text) => match serde_json::from_str(&text).expect("JSON") {
                    Value::Array(frames) => self.frames.extend(frames),
                    frame => self.frames.push_back(frame),
                },
                Message::Ping | Message::Pong(_) => {}
                end => panic!("a frame should come, but {end:?} did"),
            }
        }
    }

    /// Whether a frame has come that nobody asked for yet.
    pub(crate) fn has_read_more(&self) -> bool {
        !self.frames.is_empty() || !self.events.is_empty()
    }

    /// The close, with whatever comes before it passed over.
    pub(crate) async fn close(&mut self) -> (Option<u16>, String) {
        loop {
            match self.message().await {
                Message::Close(code, reason) => return (code, reason),
                Message::End => panic!("the connection ended without a close"),
                _ => {}
            }
        }
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Message {
        loop {
            if let Some((message, bytes)) = parse(&self.read) {
                self.read.drain(..bytes);
                self.messages += 1;
                return message;
            }
            if !self.fill().await {
                return Message::End;
            }
        }
    }

    async fn fill(&mut self) -> bool {
        let reading = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.read));
        // A reset is an end too.
        reading.await.expect("something comes").unwrap_or(0) > 0
    }

    /// Subscribes and expects that to work.
    pub(crate) async fn subscribe(&mut self, topic: &str, group: &str, options: Value) {
        let frame = json!({"op":"SUBSCRIBE","topic":topic,"group":group,"opts":options,"corr":"s"});
        let reply = self.ask(frame).await;
        assert_eq!(reply, json!({"op":"OK","corr":"s","group":group}));
    }

    /// Publishes and expects that to work.
    pub(crate) async fn publish(&mut self, topic: &str, payload: Value) -> Value {
        let reply = self.ask(publish(topic, payload)).await;
        assert_eq!(reply["op"], "OK", "{reply}");
        reply
    }
}

pub(crate) fn publish(topic: &str, payload: Value) -> Value {
    json!({"op":"PUBLISH","topic":topic,"payload":payload})
}

/// An ACK, NACK or MODACK of an event, with a corr.
pub(crate) fn settle(op: &str, event: &Value) -> Value {
    json!({"op":op,"topic":event["topic"],"group":event["group"],"id":event["event"]["id"],"corr":op})
}

/// A frame as clients send it.
pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..=125 => frame.push(0x80 | short as u8),
        middle @ 126..=0xFFFF => {
            frame.push(0x80 | 126);
            frame.extend((middle as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    let mask = [0x12, 0xAB, 0x00, 0xFF];
    frame.extend(mask);
    let payload = payload.iter().zip(mask.iter().cycle());
    frame.extend(payload.map(|(byte, mask)| byte ^ mask));
    frame
}

fn parse(bytes: &[u8]) -> Option<(Message, usize)> {
    let (&first, &second) = (bytes.first()?, bytes.get(1)?);
    assert_eq!(second & 0x80, 0, "frames of a server are not masked");
    let (head, length) = match second {
        126 => (
            4,
            u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)),
        ),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)),
        short => (2, u64::from(short)),
    };
    let end = head + length as usize;
    let payload = bytes.get(head..end)?.to_vec();
    let message = match first {
        0x81 => Message::Text(String::from_utf8(payload).expect("UTF-8")),
        0x88 => {
            let code = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
            let reason = payload.get(2..).unwrap_or_default();
            Message::Close(code, String::from_utf8(reason.to_vec()).expect("UTF-8"))
        }
        0x89 => Message::Ping,
        0x8A => Message::Pong(payload),
        first => panic!("the server sent a frame {first:#x}"),
    };
    Some((message, end))
}
