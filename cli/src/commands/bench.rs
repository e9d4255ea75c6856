//! `bench`: a quick look at how fast it is here, in process or over a URL.

mod publish;
mod subscribe;

use crate::output::Format;
use crate::remote::RemoteArgs;
use crate::server_url;
use crate::store;
use anyhow::Context;
use clap::{Args, Subcommand};
use prombus::{Bus, BusOptions};
use prombus_client::Client;

/// Measure publishing, or the time from publish to delivery
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus bench publish
  prombus bench subscribe --url localhost:8090")]
pub(super) struct Bench {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Publish(publish::Publish),
    Subscribe(subscribe::Subscribe),
}

/// What is measured.
#[derive(Debug, Args)]
struct TargetArgs {
    /// A server; without one a bus in this process is measured
    #[arg(long, value_name = "URL", env = "PROMBUS_URL", value_parser = server_url::parse)]
    url: Option<String>,
    /// The token to send
    #[arg(long, env = "PROMBUS_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The store of the bus in this process
    #[arg(
        long,
        value_name = "URL",
        default_value = "memory:",
        conflicts_with = "url"
    )]
    store: String,
    /// The topic that is used; its events stay
    #[arg(long, default_value = "bench", value_parser = crate::names::topic)]
    topic: String,
    /// Bytes of each payload
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(32..=1_000_000))]
    payload_bytes: u32,
}

/// A bus here or there.
enum Target {
    InProcess(Bus),
    Remote(Client),
}

impl Bench {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match &self.command {
                Subcommands::Publish(publish) => publish.run(format).await,
                Subcommands::Subscribe(subscribe) => subscribe.run(format).await,
            }
        })
    }
}

impl TargetArgs {
    async fn open(&self) -> anyhow::Result<Target> {
        match &self.url {
            Some(url) => {
                let remote = RemoteArgs {
                    url: Some(url.clone()),
                    token: self.token.clone(),
                    ..RemoteArgs::default()
                };
                Ok(Target::Remote(remote.client().await?))
            }
            None => {
                let bus = Bus::open(store::open(&self.store).await?, BusOptions::default())?;
                Ok(Target::InProcess(bus))
            }
        }
    }

    /// A JSON object of the wanted length that holds a number.
    fn payload(&self, number: u64) -> String {
        let start = format!(r#"{{"n":{number},"fill":""#);
        let fill = (self.payload_bytes as usize).saturating_sub(start.len() + 2);
        format!("{start}{}\"}}", "x".repeat(fill))
    }
}

impl Target {
    async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::InProcess(bus) => bus.close().await.context("closing the store"),
            Self::Remote(client) => Ok(client.close().await?),
        }
    }
}
