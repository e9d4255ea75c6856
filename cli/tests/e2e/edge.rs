//! What strangers and hurried people touch first: TLS, secrets, and a stderr that takes nothing.

use crate::server::{PATIENCE, Server, prombus, run};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// Puts an authority, a server's and a client's certificate into a folder.
pub(crate) fn certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key");
    let authority = params.self_signed(&authority_key).expect("a certificate");
    fs::write(folder.join("ca.pem"), authority.pem()).expect("written");
    for name in ["server", "client"] {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &authority, &authority_key);
        fs::write(
            folder.join(format!("{name}.pem")),
            signed.expect("signed").pem(),
        )
        .expect("written");
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("written");
    }
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

#[test]
fn the_shell_speaks_tls_over_http_and_websocket() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    certificates(folder.path());
    let config = "store = \"memory:\"\n[tls]\ncert = \"server.pem\"\nkey = \"server.key\"\nclient_ca = \"ca.pem\"\n\
        [auth.clients]\nclient = [\"publish:**\", \"subscribe:**\", \"admin:**\"]\n";
    fs::write(folder.path().join("prombus.toml"), config).expect("written");
    let server = Server::start_in(folder.clone(), &[]);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let identity = [
        "--ca",
        "ca.pem",
        "--client-cert",
        "client.pem",
        "--client-key",
        "client.key",
    ];
    let with_identity = |command: &[&str]| server.command(&[command, &identity].concat());
    let published = with_identity(&["pub", "hello", "{\"n\":1}"]);
    assert!(published.status.success(), "{}", text(&published));
    let listed = with_identity(&["topic", "ls"]);
    assert!(text(&listed).contains("hello"), "{}", text(&listed));
    let followed = with_identity(&["sub", "hello", "--from", "earliest", "-n", "1"]);
    assert!(text(&followed).contains("\"n\":1"), "{}", text(&followed));
    // Without the authority, or without a certificate, nothing goes.
    let untrusted = server.command(&["topic", "ls"]);
    assert!(!untrusted.status.success());
    assert!(text(&untrusted).contains("--ca"), "{}", text(&untrusted));
    assert!(
        !server
            .command(&["topic", "ls", "--ca", "ca.pem"])
            .status
            .success()
    );
    let missing = server.command(&["topic", "ls", "--ca", "none.pem"]);
    assert!(text(&missing).contains("none.pem"), "{}", text(&missing));
}

#[test]
fn weak_secrets_are_rejected_with_advice() {
    for (auth, named) in [
        ("jwt_secret = \"short\"", "jwt_secret"),
        ("jwt_secret = \"change-me\"", "jwt_secret"),
        ("token = \"change-me\"", "token"),
    ] {
        let folder = TempDir::new().expect("a folder");
        let config = format!("store = \"memory:\"\n[auth]\n{auth}\n");
        fs::write(folder.path().join("prombus.toml"), config).expect("written");
        let rejected = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        assert!(!rejected.status.success());
        let text = text(&rejected);
        assert!(
            text.contains(named) && text.contains("openssl rand"),
            "{text}"
        );
    }
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let config = "store = \"memory:\"\n[auth]\njwt_secret = \"short\"\n";
    fs::write(folder.path().join("prombus.toml"), config).expect("written");
    let server = Server::start_in(folder, &["--insecure-secret"]);
    assert_eq!(server.get("/topics").0, 401);
}

/// A full disk under the log file must not fail the requests that are logged.
#[cfg(target_os = "linux")]
#[test]
fn requests_are_answered_when_stderr_cannot_be_written() {
    let folder = TempDir::new().expect("a folder");
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        "memory:",
        "--token",
        "good",
    ];
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let mut child = prombus(folder.path(), &arguments)
        .stdout(Stdio::piped())
        .stderr(full)
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let address = line
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let address = address.unwrap_or_else(|| panic!("not ready: {line:?}"));
    let status = |token: &str| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let request = format!(
            "GET /topics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply
            .split(' ')
            .nth(1)
            .map(str::to_owned)
            .unwrap_or_default()
    };
    for _ in 0..3 {
        assert_eq!(status("bad"), "401");
        assert_eq!(status("good"), "200");
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
}
