//! `bench`: a quick look at how fast it is here, in process or over a URL.

mod publish;
mod subscribe;

use crate::remote::RemoteArgs;
use crate::store;
use anyhow::Context;
use clap::{Args, Subcommand};
use prombus::{Bus, BusOptions};
use prombus_client::Client;

/// Measure publishing, or the time from publish to delivery
#[derive(Debug, Args)]
pub(super) struct Bench {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Publish(publish::Publish),
    Subscribe(subscribe::Subscribe),
}

/// What is measured.
#[derive(Debug, Args)]
struct SideArgs {
    /// A server; without one a bus in this process is measured
    #[arg(long, value_name = "URL", env = "PROMBUS_URL")]
    url: Option<String>,
    /// The token to show
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
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A bus here or there.
enum Side {
    Here(Bus),
    There(Client),
}

impl Bench {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match &self.verb {
                Verb::Publish(publish) => publish.run().await,
                Verb::Subscribe(subscribe) => subscribe.run().await,
            }
        })
    }
}

impl SideArgs {
    async fn open(&self) -> anyhow::Result<Side> {
        match &self.url {
            Some(url) => {
                let remote = RemoteArgs {
                    url: url.clone(),
                    token: self.token.clone(),
                };
                Ok(Side::There(remote.client().await?))
            }
            None => {
                let bus = Bus::open(store::open(&self.store)?, BusOptions::default())?;
                Ok(Side::Here(bus))
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

impl Side {
    async fn close(self) -> anyhow::Result<()> {
        match self {
            Self::Here(bus) => bus.close().await.context("closing the store"),
            Self::There(client) => Ok(client.close().await?),
        }
    }
}
