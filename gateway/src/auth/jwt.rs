//! The compact form of signed tokens: three parts in base64url, of which the first two are signed.
//!
//! The header only says which of the algorithms that are taken anyway it is. What a key may be used for follows from
//! the key, so a public key can never serve as a secret, and `none` is no algorithm.
//!
//! Why not `jsonwebtoken`: version 10 brings 28 crates beside itself (feature `rust_crypto`), while `ring` is here anyway
//! for TLS. Version 9 brings none, but it accepts tokens with a `crit` header, does not know the algorithm name `Ed25519`
//! and compares `exp` with the system's clock; it would replace about 60 of the lines here and in `keys.rs`.

use super::error::AuthError;
use super::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The header of the tokens made here.
const HS256_HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// Signs claims with HS256. They need an `exp`, or the token is rejected.
pub fn sign_hs256(secret: &Secret, claims: &impl Serialize) -> Result<String, serde_json::Error> {
    let claims = serde_json::to_vec(claims)?;
    let message = format!("{}.{}", encode(HS256_HEADER.as_bytes()), encode(&claims));
    let signature = hmac::sign(&hs256_key(secret.expose()), message.as_bytes());
    Ok(format!("{message}.{}", encode(signature.as_ref())))
}

/// An algorithm whose signatures are checked with a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PublicKeyAlgorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl PublicKeyAlgorithm {
    /// The algorithm of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            // RFC 9864 gives the one curve in use a name of its own.
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A token taken apart. Nothing of it is to be believed before its signature was checked.
pub(super) struct Jwt<'a> {
    header: Header,
    /// What is signed: the first two parts as they were sent.
    pub(super) message: &'a [u8],
    /// The JSON of the claims.
    pub(super) claims: Vec<u8>,
    pub(super) signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that the verifier must support. None is supported here.
    crit: Option<IgnoredAny>,
}

impl<'a> Jwt<'a> {
    pub(super) fn parse(token: &'a str) -> Result<Self, AuthError> {
        let (message, signature) = token.rsplit_once('.').ok_or(malformed("no dots"))?;
        let (header, claims) = message
            .split_once('.')
            .filter(|(_, claims)| !claims.contains('.'))
            .ok_or(malformed("expected three parts"))?;
        let header: Header =
            serde_json::from_slice(&decode(header)?).map_err(|_| malformed("invalid header"))?;
        if header.crit.is_some() {
            return Err(malformed("unsupported crit header"));
        }
        Ok(Self {
            header,
            message: message.as_bytes(),
            claims: decode(claims)?,
            signature: decode(signature)?,
        })
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Which algorithm it asks for, if that is one for public keys.
    pub(super) fn public_key_algorithm(&self) -> Result<PublicKeyAlgorithm, AuthError> {
        PublicKeyAlgorithm::named(&self.header.alg)
            .ok_or_else(|| AuthError::wrong_algorithm(&self.header.alg))
    }

    /// Checks that it is signed with this secret and says so.
    pub(super) fn verify_hs256(&self, key: &hmac::Key) -> Result<(), AuthError> {
        if self.header.alg != "HS256" {
            return Err(AuthError::wrong_algorithm(&self.header.alg));
        }
        hmac::verify(key, self.message, &self.signature).map_err(|_| AuthError::WrongSignature)
    }
}

pub(super) fn hs256_key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(part: &str) -> Result<Vec<u8>, AuthError> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| malformed("invalid base64url"))
}

fn malformed(reason: &'static str) -> AuthError {
    AuthError::Malformed { reason }
}
