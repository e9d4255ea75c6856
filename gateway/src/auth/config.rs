//! The `[auth]` table of the configuration, and the authenticator that it asks for.

use super::Authenticator;
use super::claims::Expected;
use super::policy::Policy;
use super::secret::Secret;
use super::source::{FileKeys, KeySource};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// The shortest secret for HS256 (RFC 7518, 3.2).
const MIN_SECRET_BYTES: usize = 32;
/// What samples have in the place of a secret.
const PLACEHOLDERS: [&str; 4] = ["…", "...", "change-me", "changeme"];

/// How tokens are checked: at most one of the first four. With none, auth is off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// A static token.
    pub token: Option<Secret>,
    /// The secret that JWT are signed with.
    pub jwt_secret: Option<Secret>,
    /// A file with the public keys that JWT are signed with.
    pub jwks_file: Option<PathBuf>,
    /// Where these keys are to be had over HTTP.
    pub jwks_url: Option<String>,
    /// The `iss` that JWT must have.
    pub issuer: Option<String>,
    /// The `aud` that JWT must have, among others.
    pub audience: Option<String>,
    /// Take a `jwt_secret` that is short, or a placeholder. For tests.
    pub insecure_secret: bool,
    /// Scopes of clients by the common name of their TLS certificate; they need no token.
    pub clients: BTreeMap<String, Vec<String>>,
}

/// Why a configuration of auth makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadAuthConfig {
    /// Two ways at once.
    #[error("auth.{first} and auth.{second} are both set; keep one")]
    Both {
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A secret is empty.
    #[error("auth.{name} is empty")]
    Empty {
        /// Which one.
        name: &'static str,
    },
    /// A secret that can be guessed.
    #[error(
        "auth.{name} is too weak: {reason}. Make one with `openssl rand -base64 48`, \
         or pass --insecure-secret in tests"
    )]
    Weak {
        /// Which one.
        name: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A scope of a client is not one.
    #[error(
        "auth.clients.{client}: invalid scope {scope:?}; expected one like \"publish:orders.*\""
    )]
    BadScope {
        /// The common name.
        client: String,
        /// The scope.
        scope: String,
    },
    /// A claim is requested where tokens have none.
    #[error(
        "auth.{name} is only for JWT: set auth.jwt_secret, auth.jwks_file or auth.jwks_url too"
    )]
    OnlyForJwt {
        /// Which setting.
        name: &'static str,
    },
}

impl AuthConfig {
    /// The authenticator for it. `fetch_from` makes what gets a key set from a URL, which takes an HTTP client.
    pub fn authenticator(
        &self,
        fetch_from: impl FnOnce(&str) -> Arc<dyn KeySource>,
    ) -> Result<Authenticator, BadAuthConfig> {
        self.check()?;
        let clients = self.client_policies()?;
        Ok(self.method(fetch_from)?.with_clients(clients))
    }

    fn method(
        &self,
        fetch_from: impl FnOnce(&str) -> Arc<dyn KeySource>,
    ) -> Result<Authenticator, BadAuthConfig> {
        let expected = Expected {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
        };
        if let Some(token) = &self.token {
            return Authenticator::token(token);
        }
        if let Some(secret) = &self.jwt_secret {
            return Authenticator::jwt_secret(secret, expected);
        }
        if let Some(path) = &self.jwks_file {
            let source = Arc::new(FileKeys::new(path));
            return Ok(Authenticator::jwks(source, expected));
        }
        if let Some(url) = &self.jwks_url {
            return Ok(Authenticator::jwks(fetch_from(url), expected));
        }
        Ok(Authenticator::off())
    }

    fn client_policies(&self) -> Result<BTreeMap<String, Arc<Policy>>, BadAuthConfig> {
        let mut policies = BTreeMap::new();
        for (client, scopes) in &self.clients {
            let bad = |scope: &str| BadAuthConfig::BadScope {
                client: client.clone(),
                scope: scope.to_owned(),
            };
            // A token may have scopes for others, the configuration may not.
            if let Some(scope) = scopes.iter().find(|scope| !Policy::is_scope(scope)) {
                return Err(bad(scope));
            }
            let policy = Policy::from_scopes(scopes.iter().map(String::as_str));
            let policy = policy.map_err(|error| bad(&error.reason))?;
            policies.insert(client.clone(), Arc::new(policy));
        }
        Ok(policies)
    }

    /// Rejects secrets that can be guessed: HS256 needs 32 bytes, and the samples' placeholders are known to everybody.
    fn check_secrets(&self) -> Result<(), BadAuthConfig> {
        if self.insecure_secret {
            return Ok(());
        }
        let weak = |name, reason| Err(BadAuthConfig::Weak { name, reason });
        let exposed =
            |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        match exposed(&self.jwt_secret).as_deref() {
            Some(secret) if is_placeholder(secret) => {
                return weak("jwt_secret", "it is the placeholder of the sample");
            }
            Some(secret) if !secret.is_empty() && secret.len() < MIN_SECRET_BYTES => {
                return weak("jwt_secret", "it has fewer than 32 bytes");
            }
            _ => {}
        }
        if exposed(&self.token).as_deref().is_some_and(is_placeholder) {
            weak("token", "it is the placeholder of the sample")
        } else {
            Ok(())
        }
    }

    fn check(&self) -> Result<(), BadAuthConfig> {
        self.check_secrets()?;
        let ways = [
            ("token", self.token.is_some()),
            ("jwt_secret", self.jwt_secret.is_some()),
            ("jwks_file", self.jwks_file.is_some()),
            ("jwks_url", self.jwks_url.is_some()),
        ];
        let mut set = ways
            .iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(name, _)| *name);
        let first = set.next();
        if let (Some(first), Some(second)) = (first, set.next()) {
            return Err(BadAuthConfig::Both { first, second });
        }
        let is_jwt = first.is_some_and(|name| name != "token");
        for (name, is_set) in [
            ("issuer", self.issuer.is_some()),
            ("audience", self.audience.is_some()),
        ] {
            if is_set && !is_jwt {
                return Err(BadAuthConfig::OnlyForJwt { name });
            }
        }
        Ok(())
    }
}

fn is_placeholder(secret: &str) -> bool {
    PLACEHOLDERS
        .iter()
        .any(|known| secret.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> AuthConfig {
        serde_json::from_str(json).expect("a configuration")
    }

    fn made(json: &str) -> Result<String, BadAuthConfig> {
        let made = config(json).authenticator(|_| Arc::new(FileKeys::new("keys.json")));
        made.map(|authenticator| format!("{authenticator:?}"))
    }

    #[test]
    fn each_way_makes_its_authenticator() {
        for (json, expected) in [
            ("{}", "off"),
            (r#"{"token":"t"}"#, "token"),
            (
                r#"{"jwt_secret":"0123456789abcdef0123456789abcdef","issuer":"i"}"#,
                "jwt_secret",
            ),
            (r#"{"jwt_secret":"s","insecure_secret":true}"#, "jwt_secret"),
            (r#"{"clients":{"billing":["publish:b.*"]}}"#, "off"),
            (r#"{"jwks_file":"k.json","audience":"a"}"#, "jwks"),
            (r#"{"jwks_url":"http://localhost/keys"}"#, "jwks"),
        ] {
            assert_eq!(
                made(json),
                Ok(format!("Authenticator({expected})")),
                "{json}"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let both = |first, second| BadAuthConfig::Both { first, second };
        for (json, error) in [
            (
                r#"{"token":"t","jwt_secret":"s","insecure_secret":true}"#,
                both("token", "jwt_secret"),
            ),
            (
                r#"{"jwks_file":"f","jwks_url":"u"}"#,
                both("jwks_file", "jwks_url"),
            ),
            (r#"{"token":""}"#, BadAuthConfig::Empty { name: "token" }),
            (
                r#"{"jwt_secret":""}"#,
                BadAuthConfig::Empty { name: "jwt_secret" },
            ),
            (
                r#"{"jwt_secret":"0123456789abcdef0123456789abcde"}"#,
                BadAuthConfig::Weak {
                    name: "jwt_secret",
                    reason: "it has fewer than 32 bytes",
                },
            ),
            (
                r#"{"token":"Change-Me"}"#,
                BadAuthConfig::Weak {
                    name: "token",
                    reason: "it is the placeholder of the sample",
                },
            ),
            (
                r#"{"clients":{"billing":["publish:b.*","write"]}}"#,
                BadAuthConfig::BadScope {
                    client: "billing".to_owned(),
                    scope: "write".to_owned(),
                },
            ),
            (
                r#"{"token":"t","issuer":"i"}"#,
                BadAuthConfig::OnlyForJwt { name: "issuer" },
            ),
            (
                r#"{"audience":"a"}"#,
                BadAuthConfig::OnlyForJwt { name: "audience" },
            ),
        ] {
            assert_eq!(made(json), Err(error), "{json}");
        }
        let unknown = serde_json::from_str::<AuthConfig>(r#"{"tokn":"t"}"#);
        assert!(unknown.is_err_and(|error| error.to_string().contains("tokn")));
    }

    #[test]
    fn secrets_are_not_printed() {
        let config = config(r#"{"token":"hush","jwt_secret":"hush"}"#);
        assert!(!format!("{config:?}").contains("hush"));
        assert_eq!(config.token.as_ref().map(Secret::expose), Some("hush"));
    }
}
