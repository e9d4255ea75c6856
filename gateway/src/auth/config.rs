//! The `[auth]` table of the configuration, and the authenticator that it asks for.

use super::Authenticator;
use super::claims::Expected;
use super::secret::Secret;
use super::source::{FileKeys, KeySource};
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// How tokens are checked: at most one of the first four. With none, auth is off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// A token that everybody shares.
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
    /// A claim is asked for where tokens have none.
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

    fn check(&self) -> Result<(), BadAuthConfig> {
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
            (r#"{"jwt_secret":"s","issuer":"i"}"#, "jwt_secret"),
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
                r#"{"token":"t","jwt_secret":"s"}"#,
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
