//! The configuration of a server: flags over environment over `prombus.toml` over defaults.
//!
//! All three sources become one tree before it is read, so each of them may set everything, and a key that nobody
//! knows is an error that names it and where it came from.

mod advertise;
mod environment;
pub(crate) mod listen;
mod projectors;
mod telemetry;
mod topics;

pub(crate) use projectors::ProjectorsConfig;
pub(crate) use telemetry::TelemetryConfig;
pub(crate) use topics::TopicEntry;

use anyhow::{Context, bail};
use prombus_gateway::TlsConfig;
use prombus_gateway::auth::AuthConfig;
use prombus_gateway::limits::LimitsConfig;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Read from the folder where the server is started, if it is there.
const DEFAULT_FILE: &str = "prombus.toml";

/// Everything that a server can be told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Where it listens.
    #[serde(deserialize_with = "listen::deserialize")]
    pub(crate) listen: Vec<SocketAddr>,
    /// Where other nodes of a shared store reach this one; `None`: at the first address it listens on.
    #[serde(deserialize_with = "advertise::deserialize")]
    pub(crate) advertise: Option<String>,
    /// Where the events are kept.
    pub(crate) store: String,
    /// Whether the first publish to a topic makes it.
    pub(crate) auto_create_topics: bool,
    /// Listen beyond this machine although everybody could do everything.
    pub(crate) insecure: bool,
    /// Which web pages of other origins may call.
    pub(crate) cors_origins: Vec<String>,
    /// Host names that it answers to without authentication, beside loopback names.
    pub(crate) allowed_hosts: Vec<String>,
    /// The most connections at a time.
    pub(crate) max_connections: usize,
    /// How long connections get to wind down.
    pub(crate) drain_timeout_ms: u64,
    /// How logs are written.
    pub(crate) log: LogFormat,
    /// How tokens are checked.
    pub(crate) auth: AuthConfig,
    /// Certificates; without them connections are not encrypted.
    pub(crate) tls: Option<TlsConfig>,
    /// How large and how fast.
    pub(crate) limits: LimitsConfig,
    /// Topics by name or pattern; the first that matches counts.
    pub(crate) topics: Vec<TopicEntry>,
    /// The built-in projectors.
    pub(crate) projectors: ProjectorsConfig,
    /// Where traces go.
    pub(crate) telemetry: TelemetryConfig,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Default for Config {
    fn default() -> Self {
        let gateway = prombus_gateway::GatewayOptions::default();
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 8090))],
            advertise: None,
            store: "file:./prombus-data".to_owned(),
            auto_create_topics: true,
            insecure: false,
            cors_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            max_connections: gateway.max_connections,
            drain_timeout_ms: gateway.drain_timeout_ms,
            log: LogFormat::Text,
            auth: AuthConfig::default(),
            tls: None,
            limits: LimitsConfig::default(),
            topics: Vec::new(),
            projectors: ProjectorsConfig::default(),
            telemetry: TelemetryConfig::default(),
        }
    }
}

impl Config {
    /// Reads the file (a missing one is an error only where it was asked for), then the environment, then `flags`.
    pub(crate) fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: Table,
    ) -> anyhow::Result<Self> {
        let mut tree = read_file(file)?;
        let environment = environment::read_secret_files(environment)?;
        environment::apply_ports(&mut tree, &environment)?;
        for (name, key, value) in environment::settings(environment) {
            environment::set(&mut tree, &key, value);
            read(&tree).with_context(|| format!("environment variable {name}"))?;
        }
        merge(&mut tree, flags);
        let config = read(&tree)?;
        config.check()?;
        Ok(config)
    }

    /// Whether clients have to show something.
    pub(crate) fn has_auth(&self) -> bool {
        let without_flag = AuthConfig {
            insecure_secret: false,
            ..self.auth.clone()
        };
        without_flag != AuthConfig::default()
    }

    fn check(&self) -> anyhow::Result<()> {
        self.limits.check()?;
        self.telemetry.check()?;
        self.auth.authenticator(crate::jwks::at)?;
        for topic in &self.topics {
            topic.check()?;
        }
        if self.listen.is_empty() {
            bail!("listen is empty; expected an address like 127.0.0.1:8090");
        }
        let asks_for_certificates = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let is_open = !self.has_auth() && !asks_for_certificates && !self.insecure;
        let beyond = self
            .listen
            .iter()
            .find(|address| !address.ip().is_loopback());
        if let Some(address) = beyond.filter(|_| is_open) {
            bail!(
                "auth is off, so anyone who reaches {address} could read and write everything. \
                 Set a token (--token, or [auth] in {DEFAULT_FILE}), listen on 127.0.0.1, \
                 or pass --insecure if a network you trust keeps others out"
            );
        }
        Ok(())
    }
}

fn read_file(asked_for: Option<&Path>) -> anyhow::Result<Table> {
    let path = asked_for.map_or_else(|| PathBuf::from(DEFAULT_FILE), Path::to_owned);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && asked_for.is_none() => {
            return Ok(Table::new());
        }
        Err(error) => bail!("cannot read {}: {error}", path.display()),
    };
    // Read once from the text itself, because then an error names the line.
    toml::from_str::<Config>(&text).with_context(|| format!("in {}", path.display()))?;
    text.parse()
        .with_context(|| format!("in {}", path.display()))
}

fn read(tree: &Table) -> anyhow::Result<Config> {
    Ok(Value::Table(tree.clone()).try_into()?)
}

/// Lays one tree over another.
fn merge(tree: &mut Table, over: Table) {
    for (name, value) in over {
        match (tree.get_mut(&name), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => drop(tree.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests;
