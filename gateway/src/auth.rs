//! Authentication and authorization: an [`Authenticator`] turns a token into a [`Grant`], whose [`Policy`] decides what
//! is allowed, the same for WebSocket and HTTP. Tokens and secrets never appear in debug output or errors.

mod claims;
mod config;
mod error;
mod jwt;
mod keys;
mod policy;
mod rotation;
mod secret;
mod source;
#[cfg(test)]
mod tests;

pub use claims::Expected;
pub use config::{AuthConfig, BadAuthConfig};
pub use error::{AuthError, KeysUnavailable};
pub use jwt::sign_hs256;
pub use policy::{Action, BadPolicy, Coverage, Effect, Policy, Rule, RuleAction};
pub use secret::Secret;
pub use source::{Fetched, FileKeys, KeySource};

use claims::Claims;
use jwt::Jwt;
use ring::hmac;
use rotation::RotatingKeys;
use secret::StaticToken;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The longest token.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The rights of a token.
#[derive(Debug, Clone)]
pub struct Grant {
    /// What its holder may do.
    pub policy: Arc<Policy>,
    /// When it expires: its `exp` and the tolerance. None where it does not.
    pub expires_at_ms: Option<u64>,
    /// Whose it is, for people to read.
    pub subject: Option<Arc<str>>,
}

impl Grant {
    /// Everything, for ever: where auth is off, and for the static token.
    pub fn everything() -> Self {
        Self {
            policy: Arc::new(Policy::allow_all()),
            expires_at_ms: None,
            subject: None,
        }
    }

    /// Whether it has run out.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|at_ms| now_ms >= at_ms)
    }
}

/// Checks tokens. Clones share the keys.
#[derive(Clone)]
pub struct Authenticator {
    method: Method,
    /// What clients may do without a token, by the common name of their certificate.
    clients: Arc<BTreeMap<String, Arc<Policy>>>,
}

#[derive(Clone)]
enum Method {
    Off,
    Token(Arc<StaticToken>),
    JwtSecret(Arc<hmac::Key>, Arc<Expected>),
    Jwks(Arc<RotatingKeys>, Arc<Expected>),
    Hook(Hook),
}

type Hook = Arc<dyn Fn(&str) -> HookAnswer + Send + Sync>;
type HookAnswer = Pin<Box<dyn Future<Output = Result<Grant, AuthError>> + Send>>;

impl Authenticator {
    /// No authentication; tokens are ignored.
    pub fn off() -> Self {
        Self::by(Method::Off)
    }

    /// One static token with all rights.
    pub fn token(token: &Secret) -> Result<Self, BadAuthConfig> {
        let token = token.filled("token")?;
        Ok(Self::by(Method::Token(Arc::new(StaticToken::new(token)))))
    }

    /// JWT signed with HS256 and this secret. No other algorithm is taken.
    pub fn jwt_secret(secret: &Secret, expected: Expected) -> Result<Self, BadAuthConfig> {
        let key = jwt::hs256_key(secret.filled("jwt_secret")?);
        Ok(Self::by(Method::JwtSecret(
            Arc::new(key),
            Arc::new(expected),
        )))
    }

    /// JWT signed with RS256, ES256 or EdDSA by a key of this set. [`Authenticator::refresh`] loads it.
    pub fn jwks(source: Arc<dyn KeySource>, expected: Expected) -> Self {
        let keys = Arc::new(RotatingKeys::new(source));
        Self::by(Method::Jwks(keys, Arc::new(expected)))
    }

    /// Tokens are checked by this function.
    pub fn function<F>(function: F) -> Self
    where
        F: Fn(&str) -> Result<Grant, AuthError> + Send + Sync + 'static,
    {
        Self::hook(move |token| std::future::ready(function(token)))
    }

    /// Tokens are checked by this asynchronous function.
    pub fn hook<F, A>(hook: F) -> Self
    where
        F: Fn(&str) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Grant, AuthError>> + Send + 'static,
    {
        Self::by(Method::Hook(Arc::new(move |token| Box::pin(hook(token)))))
    }

    /// Clients that present a certificate with one of these common names need no token.
    #[must_use]
    pub fn with_clients(mut self, clients: BTreeMap<String, Arc<Policy>>) -> Self {
        self.clients = Arc::new(clients);
        self
    }

    /// Whether there is no authentication at all.
    pub fn is_off(&self) -> bool {
        matches!(self.method, Method::Off) && self.clients.is_empty()
    }

    /// Checks a token or, without one, the common name of the client's certificate, which TLS has verified.
    pub async fn authenticate_peer(
        &self,
        token: Option<&str>,
        subject: Option<&str>,
        now_ms: u64,
    ) -> Result<Grant, AuthError> {
        let has_token = token.is_some_and(|token| !token.is_empty());
        let uses_tokens = !matches!(self.method, Method::Off);
        if !(has_token && uses_tokens)
            && let Some(grant) = subject.and_then(|subject| self.client(subject))
        {
            return Ok(grant);
        }
        self.authenticate(token, now_ms).await
    }

    /// The rights of a client by the common name of its certificate.
    pub(crate) fn client(&self, subject: &str) -> Option<Grant> {
        Some(Grant {
            policy: self.clients.get(subject)?.clone(),
            expires_at_ms: None,
            subject: Some(subject.into()),
        })
    }

    /// Checks a token. It waits only where the key of a JWT is not known yet.
    pub async fn authenticate(&self, token: Option<&str>, now_ms: u64) -> Result<Grant, AuthError> {
        if self.is_off() {
            return Ok(Grant::everything());
        }
        let token = token
            .filter(|token| !token.is_empty())
            .ok_or(AuthError::Missing)?;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(AuthError::Malformed { reason: "too long" });
        }
        match &self.method {
            // Not off altogether: only clients with a known certificate are let in.
            Method::Off => Err(AuthError::Missing),
            Method::Token(expected) => expected.check(token).map(|()| Grant::everything()),
            Method::JwtSecret(key, expected) => {
                let jwt = Jwt::parse(token)?;
                jwt.verify_hs256(key)?;
                Claims::parse(&jwt.claims)?.grant(expected, now_ms)
            }
            Method::Jwks(keys, expected) => {
                let jwt = Jwt::parse(token)?;
                let algorithm = jwt.public_key_algorithm()?;
                let keys = keys.that_know(algorithm, jwt.kid(), now_ms).await?;
                keys.verify(algorithm, &jwt)?;
                Claims::parse(&jwt.claims)?.grant(expected, now_ms)
            }
            Method::Hook(hook) => hook(token).await,
        }
    }

    /// Loads the key set now. At the start it tells whether the source works at all; a set that was loaded before
    /// stays in use when this fails.
    pub async fn refresh(&self, now_ms: u64) -> Result<(), KeysUnavailable> {
        match &self.method {
            Method::Jwks(keys, _) => keys.refresh(now_ms).await,
            _ => Ok(()),
        }
    }

    /// Loads the key set if it is time to. To be called every few seconds, so that a key that was withdrawn is
    /// forgotten also where everybody shows keys that are known.
    pub async fn refresh_if_due(&self, now_ms: u64) -> Result<(), KeysUnavailable> {
        match &self.method {
            Method::Jwks(keys, _) => keys.refresh_if_due(now_ms).await,
            _ => Ok(()),
        }
    }

    fn by(method: Method) -> Self {
        let clients = Arc::default();
        Self { method, clients }
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match &self.method {
            Method::Off => "off",
            Method::Token(_) => "token",
            Method::JwtSecret(..) => "jwt_secret",
            Method::Jwks(..) => "jwks",
            Method::Hook(_) => "hook",
        };
        write!(f, "Authenticator({method})")
    }
}
