//! prombus, through its own client over WebSocket; topics are set and replayed over HTTP.

use super::{Consumer, Pending, Publisher, See, System};
use crate::Outcome;
use crate::http;
use crate::payload::Payload;
use crate::process::Process;
use memchr::memmem::Finder;
use prombus_client::{
    Client, ClientOptions, Delivery, PublishOptions, StartAt, SubscribeOptions, Subscription,
};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Events that a consumer may have, and takes before the row looks at them.
const MAX_IN_FLIGHT: usize = 10_000;
const TAKEN_AT_A_TIME: usize = 1_000;
/// Keys of a topic that is compacted.
const KEYS: usize = 64;
const READY: &str = "prombus ready on http://";
/// What comes before the payload in a record, which is its last field here.
const PAYLOAD_FIELD: &[u8] = br#""payload":"#;

struct Prombus {
    process: Process,
    address: SocketAddr,
    durability: &'static str,
}

struct PrombusPublisher {
    client: Client,
    topic: String,
    /// Events get these keys in turns; none without keys.
    keys: Vec<String>,
    sent: usize,
}

struct PrombusConsumer {
    client: Client,
    subscription: Subscription,
}

/// Starts the server; its topics are made with the given durability.
pub(super) async fn start(
    program: &Path,
    folder: &Path,
    durability: &'static str,
) -> Outcome<impl System + use<>> {
    let store = format!("file:{}", folder.join("data").display());
    let mut command = Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", &store]);
    // Nothing that lies about is to change how it runs.
    command.current_dir(folder);
    let (process, line) = Process::start_and_read_line(&mut command)?;
    let address = line
        .strip_prefix(READY)
        .and_then(|rest| rest.split_whitespace().next());
    let address = address
        .ok_or_else(|| format!("prombus says: {line}"))?
        .parse()?;
    Ok(Prombus {
        process,
        address,
        durability,
    })
}

impl Prombus {
    /// The bus makes the ids, as the peers do.
    async fn connect(&self) -> Outcome<Client> {
        let options = ClientOptions {
            idempotent: false,
            ..ClientOptions::default()
        };
        Ok(Client::connect(&format!("ws://{}", self.address), options).await?)
    }

    async fn number(&self, path: &str, field: &str) -> Outcome<u64> {
        let answer = http::ask(self.address, &format!("GET {path}"), "").await?;
        let answer: Value = serde_json::from_slice(&answer)?;
        answer[field]
            .as_u64()
            .ok_or_else(|| format!("{path} has no {field}: {answer}").into())
    }
}

impl System for Prombus {
    fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    fn make_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let config = format!(r#"{{"durability":"{}"}}"#, self.durability);
            http::ask(self.address, &format!("PUT /topics/{topic}"), &config).await?;
            Ok(())
        })
    }

    fn remove_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            http::ask(self.address, &format!("DELETE /topics/{topic}"), "").await?;
            Ok(())
        })
    }

    fn stored<'a>(&'a self, topic: &'a str) -> Pending<'a, u64> {
        Box::pin(async move { self.number(&format!("/topics/{topic}"), "events").await })
    }

    fn unsettled<'a>(&'a self, topic: &'a str, group: &'a str) -> Pending<'a, u64> {
        Box::pin(async move {
            self.number(&format!("/lag?topic={topic}&group={group}"), "lag")
                .await
        })
    }

    fn publisher<'a>(&'a self, topic: &'a str) -> Pending<'a, Box<dyn Publisher>> {
        Box::pin(async move {
            let client = self.connect().await?;
            Ok(Box::new(PrombusPublisher::new(client, topic, 0)) as Box<dyn Publisher>)
        })
    }

    fn make_compacted_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let durability = self.durability;
            let config = format!(r#"{{"durability":"{durability}","compaction":true}}"#);
            http::ask(self.address, &format!("PUT /topics/{topic}"), &config).await?;
            Ok(())
        })
    }

    fn keyed_publisher<'a>(&'a self, topic: &'a str) -> Pending<'a, Box<dyn Publisher>> {
        Box::pin(async move {
            let client = self.connect().await?;
            Ok(Box::new(PrombusPublisher::new(client, topic, KEYS)) as Box<dyn Publisher>)
        })
    }

    fn consumer<'a>(&'a self, topic: &'a str, group: &'a str) -> Pending<'a, Box<dyn Consumer>> {
        Box::pin(async move {
            let client = self.connect().await?;
            let options = SubscribeOptions {
                from: StartAt::Earliest,
                batch_size: TAKEN_AT_A_TIME,
                max_in_flight: MAX_IN_FLIGHT,
                ..SubscribeOptions::default()
            };
            let subscription = client.subscribe(topic, group, options).await?;
            Ok(Box::new(PrombusConsumer {
                client,
                subscription,
            }) as Box<dyn Consumer>)
        })
    }

    fn replay<'a>(&'a self, topic: &'a str, _: u64, see: &'a mut See<'_>) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut records = Records::new();
            let request = format!("GET /export?topic={topic}&ndjson=1");
            http::stream(self.address, &request, "", |piece| records.take(piece, see)).await
        })
    }
}

impl PrombusPublisher {
    fn new(client: Client, topic: &str, keys: usize) -> Self {
        Self {
            client,
            topic: topic.to_owned(),
            keys: (0..keys).map(|at| format!("key-{at}")).collect(),
            sent: 0,
        }
    }
}

impl Publisher for PrombusPublisher {
    fn chunk(&self) -> usize {
        100
    }

    fn send<'a>(&'a mut self, payloads: &'a [Payload]) -> Pending<'a, Pending<'static, ()>> {
        let publish = |payload: &Payload| {
            let key = self.keys.get(self.sent % KEYS).map(String::as_str);
            self.sent += 1;
            let options = PublishOptions {
                key,
                ..PublishOptions::default()
            };
            self.client
                .publish_text(&self.topic, payload.as_str(), &options)
        };
        let answers: Vec<_> = payloads.iter().map(publish).collect();
        let answers: Pending<'static, ()> = Box::pin(async move {
            for answer in answers {
                if answer.await?.duplicate {
                    return Err("an event was taken for a duplicate".into());
                }
            }
            Ok(())
        });
        Box::pin(std::future::ready(Ok(answers)))
    }
}

impl Consumer for PrombusConsumer {
    fn take<'a>(&'a mut self, see: &'a mut See<'_>) -> Pending<'a, ()> {
        Box::pin(async move {
            let deliveries = self.subscription.next_batch(TAKEN_AT_A_TIME).await;
            if deliveries.is_empty() {
                return Err(
                    format!("the subscription ended: {:?}", self.subscription.ended()).into(),
                );
            }
            deliveries
                .iter()
                .for_each(|delivery| see(delivery.event.payload().as_bytes()));
            Delivery::ack_all(deliveries);
            Ok(())
        })
    }

    fn finish(self: Box<Self>) -> Pending<'static, ()> {
        Box::pin(async move { Ok(self.client.close().await?) })
    }
}

/// Cuts a stream of records at the line ends.
#[derive(Debug)]
struct Records {
    /// The begun line.
    begun: Vec<u8>,
    payload_field: Finder<'static>,
}

impl Records {
    fn new() -> Self {
        Self {
            begun: Vec::new(),
            payload_field: Finder::new(PAYLOAD_FIELD),
        }
    }

    fn take(&mut self, mut piece: &[u8], see: &mut See<'_>) {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let (line, rest) = (&piece[..end], &piece[end + 1..]);
            if self.begun.is_empty() {
                see(self.payload_of(line));
            } else {
                self.begun.extend_from_slice(line);
                see(self.payload_of(&self.begun));
                self.begun.clear();
            }
            piece = rest;
        }
        self.begun.extend_from_slice(piece);
    }

    /// The payload of a record; what has none is handed on as it is, and fails the check.
    fn payload_of<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let at = self.payload_field.find(record);
        let payload = at.map(|at| &record[at + PAYLOAD_FIELD.len()..]);
        payload
            .and_then(|payload| payload.strip_suffix(b"}"))
            .unwrap_or(record)
    }
}
