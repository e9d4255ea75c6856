//! `sub`: follows a topic, as a durable group or just looking.

mod manual;

use super::event_format;
use super::position::PositionArgs;
use crate::completion;
use crate::output::Format;
use crate::remote::RemoteArgs;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCandidates;
use prombus_client::{Client, Delivery, Ended, Ordering, SubscribeOptions, Subscription};

/// Follow a topic, or all that match a pattern
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus sub orders --from earliest
  prombus sub 'orders.**' --json
  prombus sub orders --group billing -n 10
  prombus sub orders --group billing --ack manual")]
pub(super) struct Subscribe {
    /// The topic, or a pattern: `*` is one segment, `**` any number
    #[arg(add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The durable group to join; without one nothing is left behind
    #[arg(short, long, add = ArgValueCandidates::new(completion::groups))]
    group: Option<String>,
    #[command(flatten)]
    position: PositionArgs,
    /// How events are acknowledged: when they are printed, or by hand; on a terminal with single keys, else by lines
    /// on stdin: `ID`, `nack ID REASON` or `extend ID`
    #[arg(long, value_enum, default_value_t = AckMode::Auto)]
    ack: AckMode,
    /// Stop after so many events
    #[arg(short = 'n', long)]
    limit: Option<u64>,
    /// At most one event of each key at a time, in order
    #[arg(long)]
    key_order: bool,
    /// Print events of earlier versions of their topic's schema as ones of the latest
    #[arg(long)]
    upcast: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AckMode {
    Auto,
    Manual,
}

impl Subscribe {
    pub(super) fn run(&self, format: Format) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let outcome = runtime.block_on(self.follow(format));
        // A thread that is blocked on stdin is not waited for.
        runtime.shutdown_background();
        outcome
    }

    async fn follow(&self, format: Format) -> anyhow::Result<()> {
        let client = self.remote.client().await?;
        let subscription = self.subscribe(&client).await?;
        let limit = self.limit.unwrap_or(u64::MAX);
        match self.ack {
            AckMode::Auto => print_and_ack(&subscription, limit, format).await?,
            AckMode::Manual => manual::settle_by_hand(&subscription, limit, format).await?,
        }
        match subscription.ended() {
            Some(Ended::Refused(error)) => bail!("the subscription ended: {error}"),
            Some(Ended::Client(error)) => bail!("the connection ended: {error}"),
            Some(Ended::Unsubscribed) | None => {}
        }
        subscription.unsubscribe().await;
        Ok(client.close().await?)
    }

    async fn subscribe(&self, client: &Client) -> anyhow::Result<Subscription> {
        let mut options = SubscribeOptions {
            upcast: self.upcast,
            ..SubscribeOptions::default()
        };
        if let Some(position) = self.position.resolve()? {
            options.from = position;
        }
        if self.key_order {
            options.ordering = Some(Ordering::Key);
        }
        let subscribed = match &self.group {
            Some(group) => client.subscribe(&self.topic, group, options).await,
            None => client.subscribe_ephemeral(&self.topic, options).await,
        };
        subscribed.with_context(|| format!("cannot follow {}", self.topic))
    }
}

async fn print_and_ack(
    subscription: &Subscription,
    limit: u64,
    format: Format,
) -> anyhow::Result<()> {
    for _ in 0..limit {
        let Some(delivery) = next_or_interrupt(subscription).await? else {
            return Ok(());
        };
        // An event that could not be printed is not acknowledged.
        event_format::print(delivery.event.json(), format)?;
        delivery.ack();
    }
    Ok(())
}

/// The next event, or none when the subscription ends or Ctrl-C is pressed.
async fn next_or_interrupt(subscription: &Subscription) -> anyhow::Result<Option<Delivery>> {
    tokio::select! {
        delivery = subscription.next() => Ok(delivery),
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            Ok(None)
        }
    }
}
