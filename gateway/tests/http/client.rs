//! A plain HTTP/1.1 client, written out so that a test can also send what no library would.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Far beyond what a slow machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that is kept alive between requests.
pub(crate) struct Client {
    stream: TcpStream,
    /// Read and not yet looked at.
    unread: Vec<u8>,
}

/// The head of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

/// A whole reply.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let unread = Vec::new();
        Self { stream, unread }
    }

    pub(crate) async fn get(&mut self, target: &str) -> Reply {
        self.request("GET", target, &[], b"").await
    }

    pub(crate) async fn post(&mut self, target: &str, body: &str) -> Reply {
        self.request("POST", target, &[], body.as_bytes()).await
    }

    pub(crate) async fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let length = body.len().to_string();
        let mut all = vec![("content-length", length.as_str())];
        all.extend_from_slice(headers);
        let mut text = head(method, target, &all).into_bytes();
        text.extend_from_slice(body);
        self.send(&text).await;
        self.reply(method == "HEAD").await
    }

    /// Sends any bytes. A server that hangs up early is no failure: what it said is still to be read.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let sent = timeout(PATIENCE, self.stream.write_all(bytes)).await;
        let _ = sent.expect("the server reads");
    }

    /// Says that nothing more comes.
    pub(crate) async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    pub(crate) async fn reply(&mut self, is_head: bool) -> Reply {
        let head = self.head().await;
        let has_body = !is_head && head.status != 204 && head.status != 304;
        let body = match (has_body, head.header("content-length")) {
            (false, _) => Vec::new(),
            (true, Some(length)) => self.take(length.parse().expect("a length")).await,
            (true, None) => self.chunks().await.expect("a whole body"),
        };
        Reply { head, body }
    }

    /// The head of a reply.
    pub(crate) async fn head(&mut self) -> Head {
        let text = self.until(b"\r\n\r\n").await.expect("a head");
        let text = String::from_utf8(text).expect("text");
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_lowercase(), value.trim().to_owned())
        });
        Head {
            status: status
                .and_then(|status| status.parse().ok())
                .expect("a status"),
            headers: headers.collect(),
        }
    }

    /// All chunks of a body; `None` where it breaks off.
    pub(crate) async fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            body.extend(chunk);
        }
        Some(body)
    }

    /// The next chunk, `Some(None)` at the end, `None` where the body breaks off.
    pub(crate) async fn chunk(&mut self) -> Option<Option<Vec<u8>>> {
        let size = self.until(b"\r\n").await?;
        let size = std::str::from_utf8(size.trim_ascii()).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        let mut chunk = self.take(size + 2).await;
        chunk.truncate(size);
        Some((size > 0).then_some(chunk))
    }

    /// Whether the server has hung up; what it says before is passed over.
    pub(crate) async fn is_closed(&mut self) -> bool {
        while self.read().await {}
        true
    }

    async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            let found = self.unread.windows(end.len()).position(|part| part == end);
            if let Some(at) = found {
                return Some(self.unread.drain(..at + end.len()).collect());
            }
            if !self.read().await {
                return None;
            }
        }
    }

    async fn take(&mut self, bytes: usize) -> Vec<u8> {
        while self.unread.len() < bytes {
            assert!(self.read().await, "the body broke off");
        }
        self.unread.drain(..bytes).collect()
    }

    /// Reads on; `false` at the end.
    async fn read(&mut self) -> bool {
        let mut some = vec![0; 64 << 10];
        let read = timeout(PATIENCE, self.stream.read(&mut some)).await;
        let read = read.expect("the server says something").unwrap_or(0);
        self.unread.extend_from_slice(&some[..read]);
        read > 0
    }
}

impl Head {
    /// All values of a header.
    pub(crate) fn headers(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The JSON of a reply that is one of success.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.head.status, 200, "{}", self.text());
        self.json()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The status and the code of a reply that is an error.
    pub(crate) fn error(&self) -> (u16, String) {
        let body = self.json();
        assert!(body["error"].is_string(), "{body}");
        let code = body["code"].as_str().unwrap_or_default();
        (self.head.status, code.to_owned())
    }

    #[track_caller]
    pub(crate) fn is_error(&self, status: u16, code: &str) {
        assert_eq!(self.error(), (status, code.to_owned()), "{}", self.text());
    }

    /// A JSON object on each line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).expect("text");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}

/// The head of a request.
pub(crate) fn head(method: &str, target: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text + "\r\n"
}
