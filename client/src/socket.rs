//! The WebSocket: connecting with or without TLS, messages in, messages out. Only this file knows the library.

use crate::endpoint::Endpoint;
use crate::options::{ClientOptions, TlsOptions};
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
    /// A sign of life: a ping, which is acknowledged already, or a pong.
    Alive,
}

/// A text message.
#[derive(Debug)]
pub(crate) struct TextMessage(Message);

/// Why a socket could not be opened or broke.
#[derive(Debug)]
pub(crate) enum SocketError {
    /// The network or the other side is gone.
    Gone(String),
    /// What came is not as it should be.
    Protocol(String),
}

impl Socket {
    /// Connects, and asks for the upgrade.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        options: &ClientOptions,
    ) -> Result<Self, SocketError> {
        let stream = dial(endpoint, options).await?;
        let builder = ClientBuilder::from_uri(endpoint.uri.clone())
            .config(Config::default().flush_threshold(FLUSH_BYTES))
            .limits(Limits::default().max_payload_len(Some(options.max_message_bytes)))
            .add_header(USER_AGENT, user_agent(options.name.as_deref()))
            .map_err(SocketError::from)?;
        let (stream, _) = builder
            .connect_on(stream)
            .await
            .map_err(SocketError::from)?;
        Ok(Self { stream })
    }

    /// The next message, `None` when the server closed in good order.
    pub(crate) fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Incoming, SocketError>>> {
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
            Some(Err(SocketError::Protocol(why)))
        } else {
            Some(Ok(Incoming::Alive))
        })
    }

    /// Whether another message can be taken.
    pub(crate) fn poll_ready(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SocketError>> {
        let ready = ready!(Pin::new(&mut self.stream).poll_ready(context));
        Poll::Ready(ready.map_err(SocketError::from))
    }

    /// Takes a text message, to be written by [`Self::poll_flush`].
    pub(crate) fn send(&mut self, text: Vec<u8>) -> Result<(), SocketError> {
        self.start(Message::text(text))
    }

    /// Takes a ping.
    pub(crate) fn ping(&mut self) -> Result<(), SocketError> {
        self.start(Message::ping(""))
    }

    /// Takes a close. Nothing can be sent after it.
    pub(crate) fn close(&mut self) -> Result<(), SocketError> {
        self.start(Message::close(Some(CloseCode::NORMAL_CLOSURE), ""))
    }

    /// Writes what was taken.
    pub(crate) fn poll_flush(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SocketError>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        Poll::Ready(flushed.map_err(SocketError::from))
    }

    fn start(&mut self, message: Message) -> Result<(), SocketError> {
        Pin::new(&mut self.stream)
            .start_send(message)
            .map_err(SocketError::from)
    }
}

impl TextMessage {
    /// Its text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_text().unwrap_or_default()
    }
}

/// A connection to the server, with TLS where its address asks for it.
pub(crate) async fn dial(
    endpoint: &Endpoint,
    options: &ClientOptions,
) -> Result<MaybeTlsStream<TcpStream>, SocketError> {
    let address = (endpoint.host.as_str(), endpoint.port);
    let stream = TcpStream::connect(address).await.map_err(gone)?;
    stream.set_nodelay(true).map_err(gone)?;
    let connector = connector(endpoint, &options.tls)?;
    let stream = connector.wrap(&endpoint.host, stream).await;
    stream.map_err(SocketError::from)
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
fn connector(endpoint: &Endpoint, _: &TlsOptions) -> Result<Connector, SocketError> {
    if endpoint.is_tls {
        Err(SocketError::Protocol(
            "wss needs the feature `tls`".to_owned(),
        ))
    } else {
        Ok(Connector::Plain)
    }
}

/// Rustls with ring. The provider is named, for a program may have several.
#[cfg(feature = "tls")]
fn connector(endpoint: &Endpoint, options: &TlsOptions) -> Result<Connector, SocketError> {
    use std::sync::Arc;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::rustls::{ClientConfig, crypto::ring};

    if !endpoint.is_tls {
        return Ok(Connector::Plain);
    }
    let protocol = |error: &dyn fmt::Display| SocketError::Protocol(error.to_string());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| protocol(&error))?
        .with_root_certificates(roots(options)?);
    let config = match &options.identity_pem {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
            let chain = chain.map_err(|error| protocol(&error))?;
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| protocol(&error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| protocol(&error))?
        }
    };
    Ok(Connector::Rustls(TlsConnector::from(Arc::new(config))))
}

/// The authorities that are trusted.
#[cfg(feature = "tls")]
fn roots(options: &TlsOptions) -> Result<tokio_rustls::rustls::RootCertStore, SocketError> {
    use tokio_rustls::rustls::RootCertStore;
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    let mut roots = RootCertStore::empty();
    let Some(pem) = &options.ca_pem else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let reason =
                "no system certificates; install ca-certificates, set SSL_CERT_FILE, or pass a CA";
            return Err(SocketError::Protocol(reason.to_owned()));
        }
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| SocketError::Protocol(error.to_string()))?;
        let added = roots.add(certificate);
        added.map_err(|error| SocketError::Protocol(error.to_string()))?;
    }
    if roots.is_empty() {
        Err(SocketError::Protocol(
            "no certificate in the CA file".to_owned(),
        ))
    } else {
        Ok(roots)
    }
}

fn gone(error: io::Error) -> SocketError {
    SocketError::Gone(error.to_string())
}

impl From<Error> for SocketError {
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

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(why) | Self::Protocol(why) => f.write_str(why),
        }
    }
}
