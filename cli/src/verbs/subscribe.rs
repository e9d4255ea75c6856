//! `sub`: follows a topic, as a durable group or just looking.

use super::place::PlaceArgs;
use super::show_event;
use crate::remote::RemoteArgs;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use prombus_client::{Client, Delivery, Ended, Ordering, SubscribeOptions, Subscription};
use std::collections::HashMap;
use std::io::{BufRead, stdin};
use tokio::sync::mpsc;

/// Lines of stdin that wait to be looked at.
const MAX_WAITING_LINES: usize = 64;

/// Follow a topic, or all that fit a pattern
#[derive(Debug, Args)]
pub(super) struct Subscribe {
    /// The topic, or a pattern: `*` is one segment, `**` any number
    topic: String,
    /// The durable group to join; without one nothing is left behind
    #[arg(short, long)]
    group: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
    /// How events are acknowledged: at once when printed, or by lines on stdin, `ID` or `nack ID REASON`
    #[arg(long, value_enum, default_value_t = Acking::Auto)]
    ack: Acking,
    /// Stop after so many events
    #[arg(short = 'n', long)]
    limit: Option<u64>,
    /// At most one event of each key at a time, in order
    #[arg(long)]
    key_order: bool,
    /// Print each event as a line of JSON, as it is stored
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Acking {
    Auto,
    Manual,
}

impl Subscribe {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let outcome = runtime.block_on(self.follow());
        // A thread that waits for a line of stdin is not waited for.
        runtime.shutdown_background();
        outcome
    }

    async fn follow(&self) -> anyhow::Result<()> {
        let client = self.remote.client().await?;
        let subscription = self.subscribe(&client).await?;
        match self.ack {
            Acking::Auto => self.print_all(&subscription).await?,
            Acking::Manual => self.print_and_obey(&subscription).await?,
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
        let mut options = SubscribeOptions::default();
        if let Some(place) = self.place.position()? {
            options.from = place;
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

    async fn print_all(&self, subscription: &Subscription) -> anyhow::Result<()> {
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(delivery) = next_or_interrupt(subscription).await? else {
                return Ok(());
            };
            // Where stdout is gone the event was not seen, and is not acknowledged.
            show_event::print(delivery.event.json(), self.json)?;
            delivery.ack();
            left -= 1;
        }
        Ok(())
    }

    async fn print_and_obey(&self, subscription: &Subscription) -> anyhow::Result<()> {
        let mut lines = stdin_lines();
        let mut unsettled = HashMap::new();
        let mut left = self.limit.unwrap_or(u64::MAX);
        let mut stdin_is_open = true;
        while left > 0 || (stdin_is_open && !unsettled.is_empty()) {
            tokio::select! {
                delivery = next_or_interrupt(subscription), if left > 0 => {
                    let Some(delivery) = delivery? else {
                        return Ok(());
                    };
                    show_event::print(delivery.event.json(), self.json)?;
                    unsettled.insert(delivery.event.id().to_owned(), delivery);
                    left -= 1;
                }
                line = lines.recv(), if stdin_is_open => match line {
                    Some(line) => settle(&mut unsettled, &line),
                    None => stdin_is_open = false,
                },
            }
        }
        Ok(())
    }
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

/// Does what a line says: `ID` acknowledges, `nack ID REASON` does the opposite.
fn settle(unsettled: &mut HashMap<String, Delivery>, line: &str) {
    let mut words = line.trim().splitn(3, ' ');
    let (id, nack) = match (words.next(), words.next()) {
        (Some("nack"), Some(id)) => (id, true),
        (Some(id), _) => (id, false),
        (None, _) => return,
    };
    match unsettled.remove(id) {
        Some(delivery) if nack => delivery.nack(words.next().unwrap_or("refused at the shell")),
        Some(delivery) => delivery.ack(),
        None if id.is_empty() => {}
        None => eprintln!("{id} was not delivered here, or is settled already"),
    }
}

/// The lines of stdin, read on a thread that may block.
fn stdin_lines() -> mpsc::Receiver<String> {
    let (give, lines) = mpsc::channel(MAX_WAITING_LINES);
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if give.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
