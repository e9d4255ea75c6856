//! Why somebody is not let in, with the word that the wire uses for it.

use super::policy::BadPolicy;
use thiserror::Error;

/// How much of a name in a token's header an error repeats.
const QUOTED_CHARS: usize = 64;

/// Why a token is good for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuthError {
    /// There is none.
    #[error("a token is needed: send AUTH first, or the header Authorization: Bearer")]
    Missing,
    /// It is not the one that is asked for here.
    #[error("the token is not the right one")]
    WrongToken,
    /// It is not a JWT, or one with a head or claims that make no sense.
    #[error("the token is no good JWT: {why}")]
    Malformed {
        /// What is wrong with it.
        why: &'static str,
    },
    /// It is signed in a way that is not taken here, or not at all.
    #[error("tokens signed with {algorithm:?} are not taken here")]
    WrongAlgorithm {
        /// What its header says, cut where it is long.
        algorithm: String,
    },
    /// No key fits, also after the key set was loaded again.
    #[error("no key fits the token's key id {kid:?}")]
    UnknownKey {
        /// What its header says, cut where it is long.
        kid: Option<String>,
    },
    /// It was signed with another key, or changed afterwards.
    #[error("the token's signature does not fit")]
    WrongSignature,
    /// It would be good for ever.
    #[error("the token has no exp; only tokens that expire are taken")]
    NoExpiry,
    /// It was good once.
    #[error("the token expired at {expired_at_ms}")]
    Expired {
        /// Its `exp` in epoch milliseconds.
        expired_at_ms: u64,
    },
    /// It will be good later.
    #[error("the token is good only from {valid_from_ms} on")]
    NotYetValid {
        /// Its `nbf` in epoch milliseconds.
        valid_from_ms: u64,
    },
    /// Somebody else made it.
    #[error("the token is from another issuer")]
    WrongIssuer,
    /// It was made for somebody else.
    #[error("the token is for another audience")]
    WrongAudience,
    /// What it says its holder may do cannot be understood.
    #[error(transparent)]
    BadPolicy(#[from] BadPolicy),
    /// It cannot be told.
    #[error(transparent)]
    KeysUnavailable(#[from] KeysUnavailable),
}

/// The key set could not be loaded. It is tried again by and by.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the keys that check tokens could not be loaded: {why}")]
pub struct KeysUnavailable {
    /// What the source or the reader of the set said.
    pub why: String,
}

impl AuthError {
    /// The word that the wire uses for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing | Self::KeysUnavailable(_) => "unauthorized",
            Self::Expired { .. } => "token_expired",
            Self::WrongToken
            | Self::Malformed { .. }
            | Self::WrongAlgorithm { .. }
            | Self::UnknownKey { .. }
            | Self::WrongSignature
            | Self::NoExpiry
            | Self::NotYetValid { .. }
            | Self::WrongIssuer
            | Self::WrongAudience
            | Self::BadPolicy(_) => "bad_token",
        }
    }

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
