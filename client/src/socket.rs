//! The WebSocket: connecting with or without TLS, messages in, messages out. Only this file knows the library.

use crate::endpoint::Endpoint;
use futures_core::Stream;
use futures_sink::Sink;
use http::header::{HeaderValue, USER_AGENT};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::net::TcpStream;
use tokio_websockets::{
    ClientBuilder, CloseCode, Config, Connector, Error, Limits, MaybeTlsStream, Message,
    WebSocketStream,
};

/// From how many waiting bytes on they are written before more are taken.
const FLUSH_BYTES: usize = 64 << 10;

/// A connected WebSocket.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// What came from the server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A text message.
    Text(TextMessage),
    /// A sign of life: a ping, which is answered already, or a pong.
    Alive,
}

/// A text message.
#[derive(Debug)]
pub(crate) struct TextMessage(Message);

/// Why a socket could not be opened or broke.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The network or the other side is gone.
    Gone(String),
    /// What came is not as it should be.
    Protocol(String),
}

impl Socket {
    /// Connects, and asks for the upgrade.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        client_name: Option<&str>,
        max_message_bytes: usize,
    ) -> Result<Self, Broken> {
        let address = (endpoint.host.as_str(), endpoint.port);
        let stream = TcpStream::connect(address).await.map_err(gone)?;
        stream.set_nodelay(true).map_err(gone)?;
        let connector = connector(endpoint)?;
        let stream = connector
            .wrap(&endpoint.host, stream)
            .await
            .map_err(Broken::from)?;
        let builder = ClientBuilder::from_uri(endpoint.uri.clone())
            .config(Config::default().flush_threshold(FLUSH_BYTES))
            .limits(Limits::default().max_payload_len(Some(max_message_bytes)))
            .add_header(USER_AGENT, user_agent(client_name))
            .map_err(Broken::from)?;
        let (stream, _) = builder.connect_on(stream).await.map_err(Broken::from)?;
        Ok(Self { stream })
    }

    /// The next message, `None` when the server closed in good order.
    pub(crate) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Incoming, Broken>>> {
        let message = match ready!(Pin::new(&mut self.stream).poll_next(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            Some(Ok(message)) => message,
        };
        Poll::Ready(if message.is_text() {
            Some(Ok(Incoming::Text(TextMessage(message))))
        } else if message.is_close() {
            None
        } else if message.is_binary() {
            let why = "a binary message came, and there are none".to_owned();
            Some(Err(Broken::Protocol(why)))
        } else {
            Some(Ok(Incoming::Alive))
        })
    }

    /// Whether another message can be taken.
    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let ready = ready!(Pin::new(&mut self.stream).poll_ready(context));
        Poll::Ready(ready.map_err(Broken::from))
    }

    /// Takes a text message, to be written by [`Self::poll_flush`].
    pub(crate) fn send(&mut self, text: Vec<u8>) -> Result<(), Broken> {
        self.start(Message::text(text))
    }

    /// Takes a ping.
    pub(crate) fn ping(&mut self) -> Result<(), Broken> {
        self.start(Message::ping(""))
    }

    /// Takes a close. Nothing can be sent after it.
    pub(crate) fn close(&mut self) -> Result<(), Broken> {
        self.start(Message::close(Some(CloseCode::NORMAL_CLOSURE), ""))
    }

    /// Writes what was taken.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        Poll::Ready(flushed.map_err(Broken::from))
    }

    fn start(&mut self, message: Message) -> Result<(), Broken> {
        Pin::new(&mut self.stream)
            .start_send(message)
            .map_err(Broken::from)
    }
}

impl TextMessage {
    /// Its text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_text().unwrap_or_default()
    }
}

fn user_agent(client_name: Option<&str>) -> HeaderValue {
    let version = concat!("prombus-client/", env!("CARGO_PKG_VERSION"));
    let named = client_name.map(|name| HeaderValue::from_str(&format!("{version} ({name})")));
    // A name that fits no header is left out.
    match named {
        Some(Ok(value)) => value,
        _ => HeaderValue::from_static(version),
    }
}

#[cfg(not(feature = "tls"))]
fn connector(endpoint: &Endpoint) -> Result<Connector, Broken> {
    match endpoint.is_tls {
        false => Ok(Connector::Plain),
        true => Err(Broken::Protocol("wss needs the feature `tls`".to_owned())),
    }
}

/// Rustls with ring and the system's certificates. The provider is named, for a program may have several.
#[cfg(feature = "tls")]
fn connector(endpoint: &Endpoint) -> Result<Connector, Broken> {
    use std::sync::Arc;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

    if !endpoint.is_tls {
        return Ok(Connector::Plain);
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let why = "the system has no certificates to trust; install ca-certificates, or name a file in SSL_CERT_FILE";
        return Err(Broken::Protocol(why.to_owned()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Broken::Protocol(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Connector::Rustls(TlsConnector::from(Arc::new(config))))
}

fn gone(error: io::Error) -> Broken {
    Broken::Gone(error.to_string())
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        match error {
            // Rustls reports what is wrong with a certificate as an I/O error of this kind.
            Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                Self::Protocol(error.to_string())
            }
            Error::Io(error) => gone(error),
            Error::AlreadyClosed => Self::Gone("it is closed".to_owned()),
            other => Self::Protocol(other.to_string()),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(why) | Self::Protocol(why) => f.write_str(why),
        }
    }
}
