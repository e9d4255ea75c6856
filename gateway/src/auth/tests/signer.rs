//! Keys and tokens for the tests.

use crate::auth::jwt::encode;
use crate::auth::{Fetched, KeysUnavailable, Secret, sign_hs256};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

/// When the tests take place.
pub(super) const NOW_SECS: u64 = 1_900_000_000;
pub(super) const NOW_MS: u64 = NOW_SECS * 1_000;
pub(super) const SECRET: &str = "a secret of thirty-two bytes ....";

/// A key set and tokens that openssl made and signed.
pub(super) fn signed() -> Value {
    serde_json::from_str(include_str!("signed.json")).expect("the fixture is JSON")
}

pub(super) fn hs256(claims: &Value) -> String {
    sign_hs256(&Secret::new(SECRET), claims).expect("claims are JSON")
}

/// A token with any header, any claims and any signature.
pub(super) fn assembled(header: &str, claims: &str, signature: &[u8]) -> String {
    let (header, claims) = (encode(header.as_bytes()), encode(claims.as_bytes()));
    format!("{header}.{claims}.{}", encode(signature))
}

pub(super) fn fetched(text: impl Into<String>) -> Fetched {
    let text = text.into().into_bytes();
    Box::pin(std::future::ready(Ok(text)))
}

pub(super) fn failed(reason: &str) -> Fetched {
    let reason = reason.to_owned();
    Box::pin(std::future::ready(Err(KeysUnavailable { reason })))
}

/// Signs with EdDSA, each seed its own key.
pub(super) struct Signer {
    kid: &'static str,
    key: Ed25519KeyPair,
}

impl Signer {
    pub(super) fn new(kid: &'static str, seed: u8) -> Self {
        let key = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("a key");
        Self { kid, key }
    }

    pub(super) fn jwk(&self) -> Value {
        let x = encode(self.key.public_key().as_ref());
        json!({"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": x})
    }

    /// A token that is good for a minute.
    pub(super) fn token(&self) -> String {
        self.signed(&format!(r#"{{"alg":"EdDSA","kid":"{}"}}"#, self.kid))
    }

    /// The same with a header of one's choice.
    pub(super) fn signed(&self, header: &str) -> String {
        let claims = json!({"exp": NOW_SECS + 60}).to_string();
        let message = format!(
            "{}.{}",
            encode(header.as_bytes()),
            encode(claims.as_bytes())
        );
        let signature = self.key.sign(message.as_bytes());
        assembled(header, &claims, signature.as_ref())
    }
}

pub(super) fn key_set(signers: &[&Signer]) -> String {
    let keys: Vec<Value> = signers.iter().map(|signer| signer.jwk()).collect();
    json!({ "keys": keys }).to_string()
}
