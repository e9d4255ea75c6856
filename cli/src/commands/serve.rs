//! `serve`: the server.

use crate::config::{Config, LogFormat};
use crate::output::Format;
use crate::{logging, server};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use toml::Table;
use tracing::Level;

/// Run the server: WebSocket and HTTP on one port
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus serve
  prombus serve --listen localhost:9000 --store file:/var/lib/prombus
  prombus serve --config prombus.toml --log json")]
pub(super) struct Serve {
    /// Where to listen: HOST:PORT, :PORT for every interface, or a port on this machine; several separated by commas
    /// [default: 127.0.0.1:8090]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    listen: Vec<String>,
    /// The URL at which other nodes of a shared store reach this one [default: the first address it listens on]
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    /// Where the events are kept: memory:, file:PATH, nats://HOST:PORT/STREAM or mongodb://HOST:PORT/DATABASE
    /// [default: file:./prombus-data]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// A token that every caller has to send
    #[arg(long)]
    token: Option<String>,
    /// The configuration file [default: prombus.toml, where it exists]
    #[arg(long, value_name = "FILE", env = "PROMBUS_CONFIG")]
    config: Option<PathBuf>,
    /// The server's certificate as PEM: speak TLS, with --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<String>,
    /// The private key of the certificate as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<String>,
    /// Authorities of client certificates as PEM: clients have to present one
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<String>,
    /// Take a jwt_secret that is short or a placeholder, in tests
    #[arg(long)]
    insecure_secret: bool,
    /// Listen beyond this machine although auth is off
    #[arg(long)]
    insecure: bool,
    /// Run built-in projectors, several separated by commas: process turns heartbeat.received into process.state
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    projectors: Vec<String>,
    /// How logs are written
    #[arg(long, value_name = "FORMAT")]
    log: Option<LogFormat>,
    /// The least severe level that is logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: Level,
}

impl Serve {
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let config = Config::load(self.config.as_deref(), std::env::vars(), self.flags())?;
        logging::init(config.log, self.log_level);
        server::run(&config, format, |_| std::future::pending())
    }

    /// The flags as a tree like the configuration file's.
    fn flags(&self) -> Table {
        let mut flags = Table::new();
        if !self.listen.is_empty() {
            flags.insert("listen".to_owned(), self.listen.clone().into());
        }
        if let Some(url) = &self.advertise {
            flags.insert("advertise".to_owned(), url.clone().into());
        }
        if let Some(store) = &self.store {
            flags.insert("store".to_owned(), store.clone().into());
        }
        let mut auth = Table::new();
        if let Some(token) = &self.token {
            auth.insert("token".to_owned(), token.clone().into());
        }
        if self.insecure_secret {
            auth.insert("insecure_secret".to_owned(), true.into());
        }
        if !auth.is_empty() {
            flags.insert("auth".to_owned(), auth.into());
        }
        let files = [
            ("cert", &self.tls_cert),
            ("key", &self.tls_key),
            ("client_ca", &self.tls_client_ca),
        ];
        let tls: Table = files
            .into_iter()
            .filter_map(|(name, file)| Some((name.to_owned(), file.clone()?.into())))
            .collect();
        if !tls.is_empty() {
            flags.insert("tls".to_owned(), tls.into());
        }
        if self.insecure {
            flags.insert("insecure".to_owned(), true.into());
        }
        if !self.projectors.is_empty() {
            let on = self
                .projectors
                .iter()
                .map(|name| (name.clone(), true.into()));
            flags.insert("projectors".to_owned(), Table::from_iter(on).into());
        }
        if let Some(format) = self.log {
            let word = match format {
                LogFormat::Text => "text",
                LogFormat::Json => "json",
            };
            flags.insert("log".to_owned(), word.into());
        }
        flags
    }
}
