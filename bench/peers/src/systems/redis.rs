//! Redis Streams, through redis-rs: a stream for each topic, written to the append-only file.

use super::{Consumer, Pending, Publisher, See, System};
use crate::Outcome;
use crate::payload::Payload;
use crate::process::{Process, START_LIMIT, free_port};
use futures_util::FutureExt;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, Value, cmd};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Commands of one pipeline; several pipelines are under way at a time.
const PIPELINE_COMMANDS: usize = 100;
/// Events of one read through a group.
const READ_EVENTS: usize = 1_000;
/// Events of one read of a range, the next of which is asked for while one is looked at.
const RANGE_EVENTS: usize = 5_000;
const BLOCK_MS: usize = 1_000;
const START_PAUSE: Duration = Duration::from_millis(2);
const FIELD: &str = "p";
/// Enough for the row with idle subscribers.
const MAX_CLIENTS: &str = "18000";

struct Redis {
    process: Process,
    url: String,
    connection: MultiplexedConnection,
}

struct RedisPublisher {
    connection: MultiplexedConnection,
    topic: String,
}

/// Reading blocks its connection, so acknowledgements have another, from the first one on.
struct RedisConsumer {
    reading: MultiplexedConnection,
    settling: Option<MultiplexedConnection>,
    url: String,
    topic: String,
    group: String,
    /// A read that is under way while the events of the one before are looked at.
    next: Pending<'static, Value>,
    acknowledged: Pending<'static, ()>,
}

/// Starts redis-server.
pub(super) async fn start(
    program: &Path,
    folder: &Path,
    fsync: &str,
) -> Outcome<impl System + use<>> {
    let port = free_port()?;
    let mut command = Command::new(program);
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--appendonly",
        "yes",
    ]);
    // It takes no snapshots beside the file, and does not write the file anew while it is measured.
    command.args([
        "--appendfsync",
        fsync,
        "--save",
        "",
        "--auto-aof-rewrite-percentage",
        "0",
        "--maxclients",
        MAX_CLIENTS,
    ]);
    let mut process = Process::start(command.arg("--dir").arg(folder))?;
    let url = format!("redis://127.0.0.1:{port}");
    let until = Instant::now() + START_LIMIT;
    loop {
        process.check()?;
        // While it loads its file it answers with an error.
        if let Ok(mut connection) = connect(&url).await
            && cmd("PING")
                .query_async::<String>(&mut connection)
                .await
                .is_ok()
        {
            return Ok(Redis {
                process,
                url,
                connection,
            });
        }
        if Instant::now() > until {
            return Err("redis-server is not ready in time".into());
        }
        tokio::time::sleep(START_PAUSE).await;
    }
}

async fn connect(url: &str) -> Outcome<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    Ok(Client::open(url)?
        .get_multiplexed_async_connection_with_config(&config)
        .await?)
}

impl System for Redis {
    fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The first event makes it.
    fn make_topic<'a>(&'a self, _: &'a str) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn remove_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            Ok(cmd("DEL")
                .arg(topic)
                .exec_async(&mut self.connection.clone())
                .await?)
        })
    }

    fn stored<'a>(&'a self, topic: &'a str) -> Pending<'a, u64> {
        Box::pin(async move {
            Ok(cmd("XLEN")
                .arg(topic)
                .query_async(&mut self.connection.clone())
                .await?)
        })
    }

    fn unsettled<'a>(&'a self, topic: &'a str, group: &'a str) -> Pending<'a, u64> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            let mut ask = cmd("XINFO");
            let groups: Vec<HashMap<String, Value>> = ask
                .arg("GROUPS")
                .arg(topic)
                .query_async(&mut connection)
                .await?;
            let name = Value::BulkString(group.as_bytes().to_vec());
            let found = groups.iter().find(|found| found.get("name") == Some(&name));
            match found.map(|found| (found.get("pending"), found.get("lag"))) {
                Some((Some(Value::Int(pending)), Some(Value::Int(lag)))) => {
                    Ok(u64::try_from(pending + lag)?)
                }
                other => Err(format!("{group} tells {other:?}").into()),
            }
        })
    }

    fn publisher<'a>(&'a self, topic: &'a str) -> Pending<'a, Box<dyn Publisher>> {
        Box::pin(async move {
            let connection = connect(&self.url).await?;
            let topic = topic.to_owned();
            Ok(Box::new(RedisPublisher { connection, topic }) as Box<dyn Publisher>)
        })
    }

    fn consumer<'a>(&'a self, topic: &'a str, group: &'a str) -> Pending<'a, Box<dyn Consumer>> {
        Box::pin(async move {
            let mut reading = connect(&self.url).await?;
            let mut make = cmd("XGROUP");
            make.arg("CREATE")
                .arg(topic)
                .arg(group)
                .arg("0")
                .arg("MKSTREAM");
            make.exec_async(&mut reading).await?;
            let consumer = RedisConsumer {
                next: read(&reading, topic, group),
                reading,
                settling: None,
                url: self.url.clone(),
                topic: topic.to_owned(),
                group: group.to_owned(),
                acknowledged: Box::pin(async { Ok(()) }),
            };
            Ok(Box::new(consumer) as Box<dyn Consumer>)
        })
    }

    fn replay<'a>(&'a self, topic: &'a str, count: u64, see: &'a mut See<'_>) -> Pending<'a, ()> {
        Box::pin(async move {
            let mut connection = connect(&self.url).await?;
            let mut page = range(&mut connection, topic, "-".to_owned()).await?;
            let mut seen = 0;
            while let Some(last) = page.last() {
                seen += page.len() as u64;
                let after = format!("({}", last.id);
                let next = range(&mut connection, topic, after);
                let mut next = std::pin::pin!(next);
                // The next page is on its way while this one is looked at.
                let early = next.as_mut().now_or_never();
                page.iter().for_each(|entry| see(&entry.payload));
                page = match early {
                    Some(page) => page?,
                    None if seen >= count => return Ok(()),
                    None => next.await?,
                };
            }
            Ok(())
        })
    }
}

impl Publisher for RedisPublisher {
    fn chunk(&self) -> usize {
        PIPELINE_COMMANDS
    }

    fn send<'a>(&'a mut self, payloads: &'a [Payload]) -> Pending<'a, Pending<'static, ()>> {
        Box::pin(async move {
            let mut pipeline = Pipeline::with_capacity(payloads.len());
            for payload in payloads {
                pipeline
                    .cmd("XADD")
                    .arg(&self.topic)
                    .arg("*")
                    .arg(FIELD)
                    .arg(payload.as_str());
            }
            let count = payloads.len();
            let mut connection = self.connection.clone();
            let answers = async move {
                let answers = connection.send_packed_commands(&pipeline, 0, count).await?;
                if answers
                    .iter()
                    .all(|answer| matches!(answer, Value::BulkString(_)))
                    && answers.len() == count
                {
                    Ok(())
                } else {
                    Err(format!("an answer is no id: {answers:?}").into())
                }
            };
            Ok(under_way(Box::pin(answers)))
        })
    }
}

impl Consumer for RedisConsumer {
    fn take<'a>(&'a mut self, see: &'a mut See<'_>) -> Pending<'a, ()> {
        Box::pin(async move {
            let next = read(&self.reading, &self.topic, &self.group);
            // On one connection answers come in order, so the read that is under way is answered first.
            let answer = std::mem::replace(&mut self.next, next).await?;
            let entries = match answer {
                Value::Nil => return Ok(()),
                answer => entries(part(part(answer, 0)?, 1)?)?,
            };
            entries.iter().for_each(|entry| see(&entry.payload));
            let mut acknowledge = cmd("XACK");
            acknowledge.arg(&self.topic).arg(&self.group);
            for entry in &entries {
                acknowledge.arg(&entry.id);
            }
            let settling = match &self.settling {
                Some(connection) => connection.clone(),
                None => self.settling.insert(connect(&self.url).await?).clone(),
            };
            let before = std::mem::replace(&mut self.acknowledged, Box::pin(async { Ok(()) }));
            let sent = acknowledged(settling, acknowledge, entries.len());
            self.acknowledged = under_way(Box::pin(sent));
            before.await
        })
    }

    fn finish(self: Box<Self>) -> Pending<'static, ()> {
        self.acknowledged
    }
}

/// Asks for the next events; it is under way at once.
fn read(connection: &MultiplexedConnection, topic: &str, group: &str) -> Pending<'static, Value> {
    let mut command = cmd("XREADGROUP");
    command.arg("GROUP").arg(group).arg("only");
    command
        .arg("COUNT")
        .arg(READ_EVENTS)
        .arg("BLOCK")
        .arg(BLOCK_MS);
    command.arg("STREAMS").arg(topic).arg(">");
    let mut connection = connection.clone();
    under_way(Box::pin(async move {
        Ok(connection.send_packed_command(&command).await?)
    }))
}

async fn acknowledged(
    mut connection: MultiplexedConnection,
    command: Cmd,
    count: usize,
) -> Outcome<()> {
    let settled: usize = command.query_async(&mut connection).await?;
    if settled == count {
        Ok(())
    } else {
        Err(format!("{settled} of {count} were settled").into())
    }
}

/// Polls once, which sends what is to be sent.
fn under_way<T: Send + 'static>(mut answer: Pending<'static, T>) -> Pending<'static, T> {
    match answer.as_mut().now_or_never() {
        Some(done) => Box::pin(async move { done }),
        None => answer,
    }
}

async fn range(
    connection: &mut MultiplexedConnection,
    topic: &str,
    from: String,
) -> Outcome<Vec<Entry>> {
    let mut ask = cmd("XRANGE");
    ask.arg(topic)
        .arg(from)
        .arg("+")
        .arg("COUNT")
        .arg(RANGE_EVENTS);
    entries(connection.send_packed_command(&ask).await?)
}

/// An event as it is answered.
struct Entry {
    id: String,
    payload: Vec<u8>,
}

fn entries(answer: Value) -> Outcome<Vec<Entry>> {
    let Value::Array(entries) = answer else {
        return Err("the answer is no list".into());
    };
    let entry = |entry: Value| match entry {
        Value::Array(mut parts) if parts.len() == 2 => match (parts.pop(), parts.pop()) {
            (Some(fields), Some(Value::BulkString(id))) => match part(fields, 1)? {
                Value::BulkString(payload) => Ok(Entry {
                    id: String::from_utf8(id)?,
                    payload,
                }),
                _ => Err("a payload is no text".into()),
            },
            _ => Err("an entry has no id".into()),
        },
        _ => Err("an entry is no pair".into()),
    };
    entries.into_iter().map(entry).collect()
}

/// One part of a list.
fn part(list: Value, at: usize) -> Outcome<Value> {
    match list {
        Value::Array(mut parts) if at < parts.len() => Ok(parts.swap_remove(at)),
        other => Err(format!("there is no part {at} in {other:?}").into()),
    }
}
