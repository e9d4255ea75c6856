//! `token`: mints a JWT for development.

use crate::output::{self, Format};
use anyhow::bail;
use clap::Args;
use prombus::{Clock, SystemClock};
use prombus_api::http::Age;
use prombus_gateway::auth::{Policy, Secret, sign_hs256};
use serde_json::json;

/// Mint a JWT for development, signed with HS256
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus token --secret 'at least thirty-two bytes of secret' --scope 'publish:heartbeat.*'
  prombus token --secret 'at least thirty-two bytes of secret' --scope 'admin:**' --ttl 10m --subject ops")]
pub(super) struct Token {
    /// The secret that the server has as auth.jwt_secret
    #[arg(long, env = "PROMBUS_JWT_SECRET", hide_env_values = true)]
    secret: String,
    /// What its holder may do, e.g. `publish:heartbeat.*`; give it several times for more
    #[arg(long = "scope", required = true)]
    scopes: Vec<String>,
    /// How long it is good for
    #[arg(long, default_value = "1h", value_parser = crate::time::parse_age)]
    ttl: Age,
    /// Whose it is
    #[arg(long)]
    subject: Option<String>,
    /// The issuer, where the server asks for one
    #[arg(long)]
    issuer: Option<String>,
    /// The audience, where the server asks for one
    #[arg(long)]
    audience: Option<String>,
}

impl Token {
    pub(super) fn run(self, format: Format) -> anyhow::Result<()> {
        if self.secret.is_empty() {
            bail!("the secret is empty; pass the server's auth.jwt_secret");
        }
        for scope in &self.scopes {
            // A server ignores scopes that it does not know; whoever mints one here would want to hear of it.
            let policy = Policy::from_scopes([scope.as_str()])?;
            if policy == Policy::default() {
                bail!(
                    "invalid scope {scope:?}; expected one like publish:heartbeat.*, subscribe:process.** or admin:**"
                );
            }
        }
        let now_secs = SystemClock.now_ms() / 1_000;
        let mut claims = json!({
            "scopes": self.scopes,
            "iat": now_secs,
            "exp": now_secs.saturating_add(self.ttl.ms.div_ceil(1_000)),
        });
        for (name, value) in [
            ("sub", self.subject),
            ("iss", self.issuer),
            ("aud", self.audience),
        ] {
            if let Some(value) = value {
                claims[name] = value.into();
            }
        }
        let token = sign_hs256(&Secret::new(self.secret), &claims)?;
        if format.is_json() {
            output::json(&json!({"token": token, "expires": claims["exp"]}))
        } else {
            output::line(token)
        }
    }
}
