//! TLS: HTTP and WebSocket over it, certificates that change, and clients known by their certificates.

use super::client::PATIENCE;
use super::server::Running;
use prombus::{Bus, BusOptions, SystemClock};
use prombus_gateway::auth::{AuthConfig, Authenticator, FileKeys};
use prombus_gateway::{Gateway, GatewayOptions, Server, Tls, TlsConfig, TlsError};
use prombus_store::memory::MemoryStore;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, KeyPair};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// An authority that signs certificates.
struct Authority {
    certificate: Certificate,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate, key }
    }

    fn sign(&self, name: &str) -> (Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.certificate, &self.key);
        (signed.expect("a certificate"), key)
    }

    /// Puts a server's certificate into a folder.
    fn write(&self, folder: &Path) {
        let (certificate, key) = self.sign("server");
        std::fs::write(folder.join("cert.pem"), certificate.pem()).expect("written");
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).expect("written");
    }

    /// A client that trusts it, and presents a certificate where it has one.
    fn client(&self, identity: Option<(Certificate, KeyPair)>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.certificate.der().clone())
            .expect("an authority");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
                let chain = vec![certificate.der().clone()];
                builder
                    .with_client_auth_cert(chain, key)
                    .expect("an identity")
            }
        };
        TlsConnector::from(Arc::new(config))
    }
}

fn config(folder: &TempDir) -> TlsConfig {
    TlsConfig {
        cert: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
        client_ca: None,
    }
}

async fn serve(tls: TlsConfig, auth: Authenticator) -> Running {
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let bus = Bus::open(store, BusOptions::default()).expect("good options");
    let gateway = Gateway::new(bus, auth, GatewayOptions::default()).expect("good patterns");
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(gateway.clone(), &[loopback])
        .await
        .expect("a port");
    let server = server.with_tls(Tls::load(tls).expect("certificates"));
    let address = server.addresses().expect("addresses")[0];
    let serving = tokio::spawn(server.serve());
    Running {
        gateway,
        address,
        serving,
    }
}

async fn connect(
    server: &Running,
    connector: &TlsConnector,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(server.address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    timeout(PATIENCE, connector.connect(name, stream))
        .await
        .expect("in time")
}

/// Sends a request that closes the connection, and gives all that comes back.
async fn request(
    server: &Running,
    connector: &TlsConnector,
    head: &str,
) -> std::io::Result<String> {
    let mut stream = connect(server, connector).await?;
    let text = format!("{head} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await?;
    let mut reply = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut reply)).await;
    read.expect("in time")?;
    Ok(reply)
}

#[tokio::test]
async fn http_and_websocket_over_tls() {
    let (authority, folder) = (Authority::new("ours"), TempDir::new().expect("a folder"));
    authority.write(folder.path());
    let server = serve(config(&folder), Authenticator::off()).await;
    let client = authority.client(None);
    let reply = request(&server, &client, "GET /topics")
        .await
        .expect("a reply");
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert!(reply.contains("\"topics\""), "{reply}");
    // Who does not trust the authority does not connect.
    let stranger = Authority::new("another").client(None);
    assert!(request(&server, &stranger, "GET /topics").await.is_err());

    let mut socket = connect(&server, &client).await.expect("a connection");
    let upgrade = "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(upgrade.as_bytes()).await.expect("sent");
    // Many small frames at once, so that several lie in one record, and one larger than a record.
    let mut frames = Vec::new();
    for number in 0..100 {
        let text =
            format!(r#"{{"op":"PUBLISH","topic":"t","payload":{number},"corr":"{number}"}}"#);
        masked(&mut frames, text.as_bytes());
    }
    let large = "x".repeat(100_000);
    let text = format!(r#"{{"op":"PUBLISH","topic":"t","payload":"{large}","corr":"large"}}"#);
    masked(&mut frames, text.as_bytes());
    socket.write_all(&frames).await.expect("sent");
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(r#""corr":"large""#) {
        let mut some = [0; 4_096];
        let count = timeout(PATIENCE, socket.read(&mut some))
            .await
            .expect("in time");
        let count = count.expect("more");
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&some[..count]);
    }
    let read = String::from_utf8_lossy(&read);
    assert!(read.starts_with("HTTP/1.1 101"), "{read}");
    assert_eq!(read.matches(r#""op":"OK""#).count(), 101);
    assert_eq!(server.bus().topic("t").expect("a topic").tail_seq, 101);
}

/// Adds a masked text frame.
fn masked(out: &mut Vec<u8>, text: &[u8]) {
    out.push(0x81);
    match text.len() {
        short @ 0..=125 => out.push(0x80 | short as u8),
        middle @ 126..=65_535 => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(text);
}

#[tokio::test]
async fn plain_http_is_told_to_use_tls() {
    let (authority, folder) = (Authority::new("ours"), TempDir::new().expect("a folder"));
    authority.write(folder.path());
    let server = serve(config(&folder), Authenticator::off()).await;
    let reply = server.client().await.get("/topics").await;
    reply.is_error(400, "bad_frame");
    assert!(reply.text().contains("https"), "{}", reply.text());
}

#[tokio::test]
async fn a_new_certificate_serves_new_connections_and_a_broken_one_changes_nothing() {
    let (authority, folder) = (Authority::new("old"), TempDir::new().expect("a folder"));
    authority.write(folder.path());
    let server = serve(config(&folder), Authenticator::off()).await;
    let old = authority.client(None);
    request(&server, &old, "GET /livez").await.expect("a reply");
    std::fs::write(folder.path().join("cert.pem"), "garbage").expect("written");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    request(&server, &old, "GET /livez")
        .await
        .expect("the old one stays");
    let authority = Authority::new("new");
    authority.write(folder.path());
    let new = authority.client(None);
    let mut has_changed = false;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        has_changed = request(&server, &new, "GET /livez").await.is_ok();
        if has_changed {
            break;
        }
    }
    assert!(has_changed, "the new certificate is used");
    assert!(request(&server, &old, "GET /livez").await.is_err());
}

#[tokio::test]
async fn clients_are_known_by_their_certificates() {
    let (authority, folder) = (Authority::new("ours"), TempDir::new().expect("a folder"));
    authority.write(folder.path());
    let client_ca = folder.path().join("ca.pem");
    std::fs::write(&client_ca, authority.certificate.pem()).expect("written");
    let tls = TlsConfig {
        client_ca: Some(client_ca),
        ..config(&folder)
    };
    let auth: AuthConfig =
        serde_json::from_str(r#"{"clients":{"reader":["subscribe:**"],"writer":["publish:**"]}}"#)
            .expect("a configuration");
    let auth = auth
        .authenticator(|_| Arc::new(FileKeys::new("none")))
        .expect("auth");
    let server = serve(tls, auth).await;
    server.fill("t", 1).await;
    let status = async |name: &str, head: &str| {
        let client = authority.client(Some(authority.sign(name)));
        let reply = request(&server, &client, head).await.expect("a reply");
        reply.split(' ').nth(1).map(str::to_owned)
    };
    assert_eq!(
        status("reader", "GET /replay?topic=t").await.as_deref(),
        Some("200")
    );
    assert_eq!(
        status("reader", "POST /publish/t").await.as_deref(),
        Some("403")
    );
    assert_eq!(
        status("writer", "GET /replay?topic=t").await.as_deref(),
        Some("403")
    );
    assert_eq!(
        status("stranger", "GET /replay?topic=t").await.as_deref(),
        Some("401")
    );
    // Without a certificate, or with one of another authority, there is no connection at all.
    assert!(
        request(&server, &authority.client(None), "GET /livez")
            .await
            .is_err()
    );
    let foreign = authority.client(Some(Authority::new("foreign").sign("reader")));
    assert!(request(&server, &foreign, "GET /livez").await.is_err());
}

#[tokio::test]
async fn what_cannot_be_used_is_named() {
    let (authority, folder) = (Authority::new("ours"), TempDir::new().expect("a folder"));
    let missing = Tls::load(config(&folder)).expect_err("no file");
    assert!(matches!(missing, TlsError::Unreadable { .. }), "{missing}");
    authority.write(folder.path());
    std::fs::write(folder.path().join("key.pem"), "").expect("written");
    let empty = Tls::load(config(&folder)).expect_err("no key");
    assert!(empty.to_string().contains("no private key in "), "{empty}");
    let other = KeyPair::generate().expect("a key").serialize_pem();
    std::fs::write(folder.path().join("key.pem"), other).expect("written");
    let mismatch = Tls::load(config(&folder)).expect_err("another key");
    assert!(matches!(mismatch, TlsError::Invalid { .. }), "{mismatch}");
}
