//! Tokens signed by keys that the server fetches from a URL, and a key that changes while it runs.

use crate::server::{PATIENCE, Server};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A key with its name.
struct Key {
    id: &'static str,
    pair: Ed25519KeyPair,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).expect("a key");
        Self { id, pair }
    }

    fn set(&self) -> String {
        let x = BASE64.encode(self.pair.public_key().as_ref());
        let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": self.id, "alg": "EdDSA", "x": x});
        json!({ "keys": [key] }).to_string()
    }

    fn token(&self, algorithm: &str) -> String {
        let part = |value: serde_json::Value| BASE64.encode(value.to_string());
        let head = part(json!({"alg": algorithm, "kid": self.id}));
        // The year 2100, so that no clock is needed.
        let claims = part(json!({"exp": 4_102_444_800_u64, "scopes": ["publish:open.*"]}));
        let signed = format!("{head}.{claims}");
        let signature = BASE64.encode(self.pair.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// Serves whatever key set there is, and returns where.
fn serve_keys(keys: Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!(
        "http://{}/keys",
        listener.local_addr().expect("its address")
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let body = keys.lock().expect("keys").clone();
            let length = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    url
}

fn publish(server: &Server, topic: &str, token: &str) -> u16 {
    server
        .post(&format!("/publish/{topic}?token={token}"), "1")
        .0
}

#[test]
fn keys_come_from_a_url_and_may_change() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let keys = Arc::new(Mutex::new(old.set()));
    let url = serve_keys(keys.clone());
    let folder = Arc::new(tempfile::TempDir::new().expect("a folder"));
    let config = format!("store = \"memory:\"\n[auth]\njwks_url = \"{url}\"\n");
    std::fs::write(folder.path().join("prombus.toml"), config).expect("it is written");
    let server = Server::start_in(folder, &[]);
    assert_eq!(publish(&server, "open.a", &old.token("EdDSA")), 200);
    assert_eq!(publish(&server, "closed.a", &old.token("EdDSA")), 403);
    assert_eq!(publish(&server, "open.a", &old.token("none")), 401);
    assert_eq!(publish(&server, "open.a", ""), 401);
    let forged = Key {
        id: "old",
        ..Key::new("x")
    };
    assert_eq!(publish(&server, "open.a", &forged.token("EdDSA")), 401);
    *keys.lock().expect("keys") = new.set();
    // The set is asked for again for a key that is not in it, but not more often than every ten seconds.
    let known = (0..300).any(|_| {
        let status = publish(&server, "open.a", &new.token("EdDSA"));
        if status != 200 {
            pause();
        }
        status == 200
    });
    assert!(known, "the new key is learnt");
    assert_eq!(publish(&server, "open.a", &old.token("EdDSA")), 401);
}

#[allow(
    clippy::disallowed_methods,
    reason = "another process is waited for, which nothing tells about"
)]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(100));
}
