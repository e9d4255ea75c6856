//! Secrets: a text that is not printed, and the static token, which is not even kept.

use super::config::BadAuthConfig;
use super::error::AuthError;
use ring::hmac;
use serde::Deserialize;
use std::fmt;

/// A token or secret from the configuration. It can be read on purpose, but not printed by accident.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text from being printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text; an empty secret is an error.
    pub(super) fn filled(&self, name: &'static str) -> Result<&str, BadAuthConfig> {
        match self.0.as_str() {
            "" => Err(BadAuthConfig::Empty { name }),
            text => Ok(text),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What is kept of the static token: its MAC. MACs all have one length and are compared in constant time, so the
/// time that a wrong guess takes tells nothing of how wrong it is.
pub(super) struct StaticToken {
    key: hmac::Key,
    mac: hmac::Tag,
}

impl StaticToken {
    pub(super) fn new(token: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"prombus static token");
        let mac = hmac::sign(&key, token.as_bytes());
        Self { key, mac }
    }

    pub(super) fn check(&self, token: &str) -> Result<(), AuthError> {
        hmac::verify(&self.key, token.as_bytes(), self.mac.as_ref())
            .map_err(|_| AuthError::WrongToken)
    }
}
