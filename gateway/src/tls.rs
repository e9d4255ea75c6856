//! TLS: certificates from files, read again when they change, and clients known by their certificates.
//!
//! The files are compared when a connection comes in, at most once a second. A new certificate serves new connections;
//! one that cannot be used leaves the old one in place and is logged.

mod subject;

use prombus::LockExt;
use serde::Deserialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// How often the files are compared at most.
const RELOAD_INTERVAL_MS: u64 = 1_000;
/// The largest file of certificates or keys.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// The `[tls]` table of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The server's certificate and those between it and its authority, as PEM.
    pub cert: PathBuf,
    /// The private key of the certificate, as PEM.
    pub key: PathBuf,
    /// Authorities of client certificates, as PEM. With it, clients must present a certificate of one of them.
    pub client_ca: Option<PathBuf>,
}

/// Why certificates cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: String,
    },
    /// A file holds nothing usable.
    #[error("no {expected} in {}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
    },
    /// The certificate and the key do not work together, or not at all.
    #[error("invalid certificate {}: {error}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: String,
    },
}

/// The certificates of a server.
pub struct Tls {
    config: TlsConfig,
    state: Mutex<State>,
}

struct State {
    files: Files,
    acceptor: TlsAcceptor,
    checked_ms: Option<u64>,
}

/// The contents of the files.
#[derive(PartialEq, Eq)]
struct Files {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Tls {
    /// Loads the certificates.
    pub fn load(config: TlsConfig) -> Result<Arc<Self>, TlsError> {
        let files = Files::read(&config)?;
        let acceptor = files.acceptor(&config)?;
        Ok(Arc::new(Self {
            config,
            state: Mutex::new(State {
                files,
                acceptor,
                checked_ms: None,
            }),
        }))
    }

    /// Accepts with the certificates as they are now; `now_ms` is monotonic.
    pub(crate) async fn accept(
        self: &Arc<Self>,
        stream: TcpStream,
        now_ms: u64,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        if self.is_check_due(now_ms) {
            let this = self.clone();
            // Where the check is cancelled with the runtime, the certificates stay as they are.
            let _ = tokio::task::spawn_blocking(move || this.reload()).await;
        }
        let acceptor = self.state().acceptor.clone();
        acceptor.accept(stream).await
    }

    /// The certificate with its chain and its key, to present to other nodes.
    pub(crate) fn identity(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        self.state().files.identity(&self.config)
    }

    fn is_check_due(&self, now_ms: u64) -> bool {
        let mut state = self.state();
        let is_due = state
            .checked_ms
            .is_none_or(|checked_ms| now_ms >= checked_ms.saturating_add(RELOAD_INTERVAL_MS));
        if is_due {
            state.checked_ms = Some(now_ms);
        }
        is_due
    }

    fn reload(&self) {
        let loaded = Files::read(&self.config).and_then(|files| {
            if files == self.state().files {
                return Ok(None);
            }
            let acceptor = files.acceptor(&self.config)?;
            Ok(Some((files, acceptor)))
        });
        match loaded {
            Ok(None) => {}
            Ok(Some((files, acceptor))) => {
                let mut state = self.state();
                (state.files, state.acceptor) = (files, acceptor);
                drop(state);
                tracing::info!(cert = %self.config.cert.display(), "TLS certificate reloaded");
            }
            Err(error) => tracing::warn!(%error, "TLS certificate not reloaded, the old one stays"),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.guard()
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Files {
    fn read(config: &TlsConfig) -> Result<Self, TlsError> {
        Ok(Self {
            cert: read(&config.cert)?,
            key: read(&config.key)?,
            client_ca: config.client_ca.as_deref().map(read).transpose()?,
        })
    }

    fn acceptor(&self, config: &TlsConfig) -> Result<TlsAcceptor, TlsError> {
        let invalid = |path: &Path, error: &dyn std::fmt::Display| TlsError::Invalid {
            path: path.to_owned(),
            error: error.to_string(),
        };
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid(&config.cert, &error))?;
        let builder = match (&config.client_ca, &self.client_ca) {
            (Some(path), Some(pem)) => {
                builder.with_client_cert_verifier(client_verifier(path, pem, provider)?)
            }
            _ => builder.with_no_client_auth(),
        };
        let (chain, key) = self.identity(config)?;
        let mut server = builder
            .with_single_cert(chain, key)
            .map_err(|error| invalid(&config.cert, &error))?;
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(server)))
    }

    fn identity(
        &self,
        config: &TlsConfig,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let chain = certificates(&config.cert, &self.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| TlsError::Empty {
            path: config.key.clone(),
            expected: "private key",
        })?;
        Ok((chain, key))
    }
}

/// The common name of the certificate that a client presented.
pub(crate) fn client_subject(stream: &TlsStream<TcpStream>) -> Option<Arc<str>> {
    let certificates = stream.get_ref().1.peer_certificates()?;
    subject::common_name(certificates.first()?).map(Arc::from)
}

fn client_verifier(
    path: &Path,
    pem: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn tokio_rustls::rustls::server::danger::ClientCertVerifier>, TlsError> {
    let invalid = |error: String| TlsError::Invalid {
        path: path.to_owned(),
        error,
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        roots
            .add(certificate)
            .map_err(|error| invalid(error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| invalid(error.to_string()))
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = parsed.map_err(|error| TlsError::Invalid {
        path: path.to_owned(),
        error: error.to_string(),
    })?;
    if certificates.is_empty() {
        Err(TlsError::Empty {
            path: path.to_owned(),
            expected: "certificate",
        })
    } else {
        Ok(certificates)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut text = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_PEM_BYTES).read_to_end(&mut text))
        .map_err(|error| TlsError::Unreadable {
            path: path.to_owned(),
            error: error.to_string(),
        })?;
    Ok(text)
}
