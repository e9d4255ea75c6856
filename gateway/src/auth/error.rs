//! Authentication errors.

use super::policy::BadPolicy;
use thiserror::Error;

/// How much of a name in a token's header an error repeats.
const QUOTED_CHARS: usize = 64;

/// Why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuthError {
    /// No token.
    #[error("token required: send AUTH first, or the header Authorization: Bearer")]
    Missing,
    /// Not the configured token.
    #[error("invalid token")]
    WrongToken,
    /// Not a JWT, or its header or claims are invalid.
    #[error("malformed JWT: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Its algorithm is not accepted.
    #[error("unsupported token algorithm {algorithm:?}")]
    WrongAlgorithm {
        /// From its header, truncated.
        algorithm: String,
    },
    /// No key matches, also after the key set was reloaded.
    #[error("no signing key with id {kid:?}")]
    UnknownKey {
        /// From its header, truncated.
        kid: Option<String>,
    },
    /// The signature does not verify.
    #[error("invalid token signature")]
    WrongSignature,
    /// It does not expire.
    #[error("token has no exp claim")]
    NoExpiry,
    /// It has expired.
    #[error("token expired at {expired_at_ms}")]
    Expired {
        /// Its `exp` in epoch milliseconds.
        expired_at_ms: u64,
    },
    /// It is not valid yet.
    #[error("token is not valid before {valid_from_ms}")]
    NotYetValid {
        /// Its `nbf` in epoch milliseconds.
        valid_from_ms: u64,
    },
    /// Another issuer.
    #[error("wrong token issuer")]
    WrongIssuer,
    /// Another audience.
    #[error("wrong token audience")]
    WrongAudience,
    /// Its policy or scopes are invalid.
    #[error(transparent)]
    BadPolicy(#[from] BadPolicy),
    /// The signing keys are not available.
    #[error(transparent)]
    KeysUnavailable(#[from] KeysUnavailable),
}

/// The key set could not be loaded. It is retried.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("signing keys unavailable: {reason}")]
pub struct KeysUnavailable {
    /// The error of the source or of parsing.
    pub reason: String,
}

impl AuthError {
    pub(super) fn wrong_algorithm(algorithm: &str) -> Self {
        Self::WrongAlgorithm {
            algorithm: quoted(algorithm),
        }
    }

    pub(super) fn unknown_key(kid: Option<&str>) -> Self {
        Self::UnknownKey {
            kid: kid.map(quoted),
        }
    }
}

fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
