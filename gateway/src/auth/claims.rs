//! The claims of a token whose signature was checked: whether it is good now and here, and for what.

use super::Grant;
use super::error::AuthError;
use super::policy::Policy;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Tolerance for the clock of the issuer.
const TOLERANCE_MS: u64 = 5_000;
/// How much of a subject is kept, for people to read.
const MAX_SUBJECT_CHARS: usize = 256;

/// Claims that tokens must have here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The `iss`, where it matters.
    pub issuer: Option<String>,
    /// One of the `aud`, where it matters. Where it does not, tokens for anybody are taken.
    pub audience: Option<String>,
}

/// What of the claims matters here.
#[derive(Deserialize)]
pub(super) struct Claims {
    exp: Option<NumericDate>,
    nbf: Option<NumericDate>,
    iss: Option<String>,
    aud: Option<Texts>,
    sub: Option<String>,
    policy: Option<Box<RawValue>>,
    scopes: Option<Texts>,
    scope: Option<Texts>,
}

/// Seconds since the epoch, whole or not.
#[derive(Clone, Copy, Deserialize)]
#[serde(transparent)]
struct NumericDate(f64);

/// One text, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Claims {
    pub(super) fn parse(json: &[u8]) -> Result<Self, AuthError> {
        serde_json::from_slice(json).map_err(|_| AuthError::Malformed {
            reason: "invalid claims",
        })
    }

    /// The rights of the token.
    pub(super) fn grant(&self, expected: &Expected, now_ms: u64) -> Result<Grant, AuthError> {
        let expires_at_ms = self.check_time(now_ms)?;
        if expected.issuer.is_some() && expected.issuer != self.iss {
            return Err(AuthError::WrongIssuer);
        }
        let is_for = |audience: &String| self.aud.as_ref().is_some_and(|aud| aud.has(audience));
        if !expected.audience.as_ref().is_none_or(is_for) {
            return Err(AuthError::WrongAudience);
        }
        let cut = |subject: &String| -> Arc<str> {
            let cut: String = subject.chars().take(MAX_SUBJECT_CHARS).collect();
            cut.into()
        };
        Ok(Grant {
            policy: Arc::new(self.policy()?),
            expires_at_ms: Some(expires_at_ms),
            subject: self.sub.as_ref().map(cut),
        })
    }

    /// When the token ends, tolerance included, if it has begun and not ended.
    fn check_time(&self, now_ms: u64) -> Result<u64, AuthError> {
        let expired_at_ms = self.exp.ok_or(AuthError::NoExpiry)?.as_ms();
        let end_ms = expired_at_ms.saturating_add(TOLERANCE_MS);
        if now_ms >= end_ms {
            return Err(AuthError::Expired { expired_at_ms });
        }
        let valid_from_ms = self.nbf.map_or(0, NumericDate::as_ms);
        if now_ms.saturating_add(TOLERANCE_MS) < valid_from_ms {
            return Err(AuthError::NotYetValid { valid_from_ms });
        }
        Ok(end_ms)
    }

    /// The claim `policy`, or else what the scopes allow. A token with neither is good, and allows nothing.
    fn policy(&self) -> Result<Policy, AuthError> {
        if let Some(policy) = &self.policy {
            return Ok(Policy::from_json(policy.get())?);
        }
        let scopes = self.scopes.iter().chain(&self.scope).flat_map(Texts::words);
        Ok(Policy::from_scopes(scopes)?)
    }
}

impl NumericDate {
    /// The cast stops at either end of what there is room for.
    fn as_ms(self) -> u64 {
        (self.0 * 1_000.0).round() as u64
    }
}

impl Texts {
    fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }

    fn has(&self, wanted: &str) -> bool {
        self.texts().iter().any(|text| text == wanted)
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.texts().iter().flat_map(|text| text.split_whitespace())
    }
}
