//! `serve`: the server.

use crate::config::{Config, LogFormat};
use crate::{logs, running};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use toml::Table;
use tracing::Level;

/// Run the server: WebSocket and HTTP on one port
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Where to listen, several separated by commas [default: 127.0.0.1:8090]
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    listen: Vec<String>,
    /// Where the events are kept: memory: or file:PATH [default: file:./prombus-data]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// A token that everyone has to show
    #[arg(long)]
    token: Option<String>,
    /// The configuration file [default: prombus.toml, where there is one]
    #[arg(long, value_name = "FILE", env = "PROMBUS_CONFIG")]
    config: Option<PathBuf>,
    /// Listen beyond this machine although auth is off
    #[arg(long)]
    insecure: bool,
    /// Run built-in projectors, several separated by commas: process turns heartbeat.received into process.state
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    projectors: Vec<String>,
    /// How logs are written
    #[arg(long, value_name = "FORMAT")]
    log: Option<LogFormat>,
    /// The least serious log that is written
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: Level,
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let config = Config::load(self.config.as_deref(), std::env::vars(), self.flags())?;
        logs::begin(config.log, self.log_level);
        running::run(&config, |_| std::future::pending())
    }

    /// The flags as a tree like the configuration file's.
    fn flags(&self) -> Table {
        let mut flags = Table::new();
        if !self.listen.is_empty() {
            flags.insert("listen".to_owned(), self.listen.clone().into());
        }
        if let Some(store) = &self.store {
            flags.insert("store".to_owned(), store.clone().into());
        }
        if let Some(token) = &self.token {
            let auth = Table::from_iter([("token".to_owned(), token.clone().into())]);
            flags.insert("auth".to_owned(), auth.into());
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
