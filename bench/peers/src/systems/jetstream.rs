//! NATS with JetStream, through async-nats: a stream with one subject for each topic, kept in files.

use super::{Consumer, Pending, Publisher, See, System};
use crate::Outcome;
use crate::payload::Payload;
use crate::process::{Process, START_LIMIT, free_port};
use async_nats::ConnectOptions;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream::{Config, Info, StorageType};
use async_nats::jetstream::{self, Context, ContextBuilder, Message};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// More than any row has in flight, also one that has fallen behind its schedule: the client waits for room without
/// looking at answers, and would wait for ever.
const MAX_IN_FLIGHT: usize = 100_000;
/// Events of one pull request.
const PULL_EVENTS: usize = 10_000;
/// Events that are taken before the row looks at them.
const TAKEN_AT_A_TIME: usize = 1_000;
const ACK_WAIT: Duration = Duration::from_secs(120);
const REQUEST_LIMIT: Duration = Duration::from_secs(60);
const START_PAUSE: Duration = Duration::from_millis(2);

struct JetStream {
    process: Process,
    url: String,
    context: Context,
}

struct JetStreamPublisher {
    context: Context,
    subject: String,
}

struct JetStreamConsumer {
    context: Context,
    messages: pull::Stream,
}

/// Starts nats-server; with `is_synced` each message is on the disk before it is acknowledged.
pub(super) async fn start(
    program: &Path,
    folder: &Path,
    is_synced: bool,
) -> Outcome<impl System + use<>> {
    let port = free_port()?;
    let sync = if is_synced {
        "sync_interval: always"
    } else {
        ""
    };
    let store = folder.join("store");
    let config = format!(
        "listen: \"127.0.0.1:{port}\"\njetstream {{\n store_dir: \"{}\"\n max_file_store: 100GB\n {sync}\n}}\n",
        store.display()
    );
    let config_file = folder.join("nats.conf");
    std::fs::write(&config_file, config)?;
    let mut process = Process::start(Command::new(program).arg("-c").arg(config_file))?;
    let url = format!("nats://127.0.0.1:{port}");
    let until = Instant::now() + START_LIMIT;
    loop {
        process.check()?;
        // It listens before it has read its streams, and answers questions about them afterwards.
        if let Ok(context) = connect(&url).await
            && context.query_account().await.is_ok()
        {
            return Ok(JetStream {
                process,
                url,
                context,
            });
        }
        if Instant::now() > until {
            return Err("nats-server is not ready in time".into());
        }
        tokio::time::sleep(START_PAUSE).await;
    }
}

async fn connect(url: &str) -> Outcome<Context> {
    let options = ConnectOptions::new()
        .client_capacity(MAX_IN_FLIGHT)
        .subscription_capacity(1 << 20)
        .read_buffer_capacity(u16::MAX);
    let client = options.connect(url).await?;
    Ok(ContextBuilder::new()
        .timeout(REQUEST_LIMIT)
        .max_ack_inflight(MAX_IN_FLIGHT)
        .build(client))
}

impl JetStream {
    async fn info(&self, topic: &str) -> Outcome<Info> {
        Ok(self.context.get_stream(topic).await?.cached_info().clone())
    }

    async fn pull(&self, topic: &str, group: Option<&str>) -> Outcome<(Context, pull::Stream)> {
        let context = connect(&self.url).await?;
        let stream = context.get_stream(topic).await?;
        let config = pull::Config {
            durable_name: group.map(str::to_owned),
            deliver_policy: DeliverPolicy::All,
            ack_policy: if group.is_some() {
                AckPolicy::Explicit
            } else {
                AckPolicy::None
            },
            ack_wait: ACK_WAIT,
            max_ack_pending: if group.is_some() {
                2 * PULL_EVENTS as i64
            } else {
                0
            },
            ..pull::Config::default()
        };
        let consumer = stream.create_consumer(config).await?;
        let messages = consumer
            .stream()
            .max_messages_per_batch(PULL_EVENTS)
            .messages()
            .await?;
        Ok((context, messages))
    }
}

impl System for JetStream {
    fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    fn make_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let config = Config {
                name: topic.to_owned(),
                subjects: vec![topic.to_owned()],
                storage: StorageType::File,
                ..Config::default()
            };
            self.context.create_stream(config).await?;
            Ok(())
        })
    }

    fn remove_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            self.context.delete_stream(topic).await?;
            Ok(())
        })
    }

    fn stored<'a>(&'a self, topic: &'a str) -> Pending<'a, u64> {
        Box::pin(async move { Ok(self.info(topic).await?.state.messages) })
    }

    fn unsettled<'a>(&'a self, topic: &'a str, group: &'a str) -> Pending<'a, u64> {
        Box::pin(async move {
            let stream = self.context.get_stream(topic).await?;
            let info = stream.consumer_info(group).await?;
            Ok(info.num_pending + info.num_ack_pending as u64)
        })
    }

    fn publisher<'a>(&'a self, topic: &'a str) -> Pending<'a, Box<dyn Publisher>> {
        Box::pin(async move {
            let context = connect(&self.url).await?;
            let subject = topic.to_owned();
            Ok(Box::new(JetStreamPublisher { context, subject }) as Box<dyn Publisher>)
        })
    }

    fn consumer<'a>(&'a self, topic: &'a str, group: &'a str) -> Pending<'a, Box<dyn Consumer>> {
        Box::pin(async move {
            let (context, messages) = self.pull(topic, Some(group)).await?;
            Ok(Box::new(JetStreamConsumer { context, messages }) as Box<dyn Consumer>)
        })
    }

    fn replay<'a>(&'a self, topic: &'a str, count: u64, see: &'a mut See<'_>) -> Pending<'a, ()> {
        Box::pin(async move {
            let (_context, mut messages) = self.pull(topic, None).await?;
            for _ in 0..count {
                let message = messages.next().await.ok_or("the stream ended")??;
                see(&message.payload);
            }
            Ok(())
        })
    }
}

impl Publisher for JetStreamPublisher {
    fn chunk(&self) -> usize {
        100
    }

    fn send<'a>(&'a mut self, payloads: &'a [Payload]) -> Pending<'a, Pending<'static, ()>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(payloads.len());
            for payload in payloads {
                let payload = Bytes::copy_from_slice(payload.as_str().as_bytes());
                answers.push(self.context.publish(self.subject.clone(), payload).await?);
            }
            let answers: Pending<'static, ()> = Box::pin(async move {
                for answer in answers {
                    let stored: jetstream::publish::PublishAck = answer.await?;
                    if stored.duplicate {
                        return Err("an event was taken for a duplicate".into());
                    }
                }
                Ok(())
            });
            Ok(answers)
        })
    }
}

impl Consumer for JetStreamConsumer {
    fn take<'a>(&'a mut self, see: &'a mut See<'_>) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut next: Option<Message> =
                Some(self.messages.next().await.ok_or("the stream ended")??);
            let mut taken = 0;
            while let Some(message) = next {
                see(&message.payload);
                message.ack().await?;
                taken += 1;
                next = if taken < TAKEN_AT_A_TIME {
                    self.messages.next().now_or_never().flatten().transpose()?
                } else {
                    None
                };
            }
            Ok(())
        })
    }

    /// A connection that goes away takes with it what the server has not read, so an answer on it is waited for.
    fn finish(self: Box<Self>) -> Pending<'static, ()> {
        Box::pin(async move {
            self.context.query_account().await?;
            Ok(())
        })
    }
}
