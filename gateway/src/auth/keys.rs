//! Public keys as a JSON Web Key Set has them (RFC 7517), and checking signatures with them.
//!
//! A key that is of no use here, because of its kind or because it is meant for something else, is passed over; above
//! all a symmetric one, which has no place in a set of public keys.

use super::error::{AuthError, KeysUnavailable};
use super::jwt::{Jwt, PublicKeyAlgorithm};
use super::source::MAX_KEY_SET_BYTES;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// The most keys that a set may have.
const MAX_KEYS: usize = 100;
/// Smaller moduli can be factored, larger ones cost too much time.
const RSA_MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1_024;
/// The bytes of a coordinate on P-256, and of a key on Ed25519.
const CURVE_BYTES: usize = 32;

/// The keys of a set that are of use here.
#[derive(Default)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

struct Key {
    kid: Option<String>,
    public: PublicKey,
}

enum PublicKey {
    Rsa(PublicKeyComponents<Vec<u8>>),
    /// The point, uncompressed.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A key as it is in a set.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a set. One without a single key of use is rejected, so that a broken page never replaces a good set.
    pub(super) fn parse(json: &[u8]) -> Result<Self, KeysUnavailable> {
        #[derive(Deserialize)]
        struct Jwks {
            keys: Vec<Value>,
        }
        let refused = |reason: &str| KeysUnavailable {
            reason: reason.to_owned(),
        };
        if json.len() > MAX_KEY_SET_BYTES {
            return Err(refused("the key set is larger than 1 MiB"));
        }
        let jwks: Jwks =
            serde_json::from_slice(json).map_err(|_| refused("it is no JSON Web Key Set"))?;
        if jwks.keys.len() > MAX_KEYS {
            return Err(refused("the key set has more than 100 keys"));
        }
        let readable = jwks
            .keys
            .into_iter()
            .filter_map(|key| serde_json::from_value(key).ok());
        let keys: Vec<Key> = readable.filter_map(Jwk::into_key).collect();
        if keys.is_empty() {
            return Err(refused("the key set has no key for RS256, ES256 or EdDSA"));
        }
        Ok(Self { keys })
    }

    /// Whether there is a key that could have signed such a token.
    pub(super) fn knows(&self, algorithm: PublicKeyAlgorithm, kid: Option<&str>) -> bool {
        self.fitting(algorithm, kid).next().is_some()
    }

    /// Checks that a key of the set has signed the token.
    pub(super) fn verify(
        &self,
        algorithm: PublicKeyAlgorithm,
        jwt: &Jwt<'_>,
    ) -> Result<(), AuthError> {
        let mut fitting = self.fitting(algorithm, jwt.kid());
        if fitting.any(|key| key.public.has_signed(jwt.message, &jwt.signature)) {
            Ok(())
        } else {
            Err(AuthError::WrongSignature)
        }
    }

    /// The keys for an algorithm: the one that the token names, or all where it names none.
    fn fitting<'a>(
        &'a self,
        algorithm: PublicKeyAlgorithm,
        kid: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Key> {
        let is_named = move |key: &&Key| kid.is_none() || key.kid.as_deref() == kid;
        let is_for = move |key: &&Key| key.public.algorithm() == algorithm;
        self.keys.iter().filter(is_named).filter(is_for)
    }
}

impl PublicKey {
    fn algorithm(&self) -> PublicKeyAlgorithm {
        match self {
            Self::Rsa(_) => PublicKeyAlgorithm::Rs256,
            Self::P256(_) => PublicKeyAlgorithm::Es256,
            Self::Ed25519(_) => PublicKeyAlgorithm::EdDsa,
        }
    }

    fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let checked = match self {
            Self::Rsa(key) => key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        };
        checked.is_ok()
    }
}

impl Jwk {
    fn into_key(self) -> Option<Key> {
        let is_for_signing = self.usage.as_deref().is_none_or(|usage| usage == "sig");
        let is_verify = |operation: &String| operation == "verify";
        let may_verify = self
            .key_ops
            .as_ref()
            .is_none_or(|all| all.iter().any(is_verify));
        if !is_for_signing || !may_verify {
            return None;
        }
        let public = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => self.rsa()?,
            ("EC", Some("P-256")) => {
                let point = [vec![4], coordinate(&self.x)?, coordinate(&self.y)?].concat();
                PublicKey::P256(point)
            }
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(coordinate(&self.x)?),
            _ => return None,
        };
        let meant_for = self.alg.as_deref().map(PublicKeyAlgorithm::named);
        let is_meant = meant_for.is_none_or(|algorithm| algorithm == Some(public.algorithm()));
        is_meant.then_some(Key {
            kid: self.kid,
            public,
        })
    }

    fn rsa(&self) -> Option<PublicKey> {
        let n = without_leading_zeros(decoded(&self.n)?);
        let e = without_leading_zeros(decoded(&self.e)?);
        RSA_MODULUS_BYTES
            .contains(&n.len())
            .then_some(PublicKey::Rsa(PublicKeyComponents { n, e }))
    }
}

fn coordinate(text: &Option<String>) -> Option<Vec<u8>> {
    decoded(text).filter(|bytes| bytes.len() == CURVE_BYTES)
}

fn decoded(text: &Option<String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.as_ref()?).ok()
}

/// Some issuers write numbers as if they could be negative.
fn without_leading_zeros(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}
