//! The systems that are measured, as the rows see them. What differs between them is behind these traits, so that each
//! row is written once.

mod jetstream;
mod prombus;
mod redis;

use super::payload::Payload;
use super::process::Process;
use super::programs::Programs;
use crate::Outcome;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;

/// Something that is waited for. It is boxed once for many events, or where each event waits for the network anyway.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = Outcome<T>> + Send + 'a>>;

/// Takes each payload that arrives.
pub(crate) type See<'a> = dyn FnMut(&[u8]) + Send + 'a;

/// A system with one of its promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Acknowledged after fsync.
    PrombusFsync,
    /// Acknowledged after the write.
    PrombusOs,
    /// As it comes: synced every two minutes.
    JetStreamDefault,
    /// `sync_interval: always`.
    JetStreamAlways,
    /// `appendfsync everysec`.
    RedisEverysec,
    /// `appendfsync always`.
    RedisAlways,
    /// An earlier build of prombus (`--before`), acknowledged after fsync.
    BeforeFsync,
    /// The same, acknowledged after the write.
    BeforeOs,
}

/// A running server.
pub(crate) trait System: Send + Sync {
    /// The server's process.
    fn process(&mut self) -> &mut Process;

    /// Makes a topic that keeps everything in files.
    fn make_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()>;

    /// Makes a topic of which only the latest event of each key has to stay, where the system knows such topics.
    fn make_compacted_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()> {
        self.make_topic(topic)
    }

    /// A publisher whose events have one of a few keys, where the system knows keys.
    fn keyed_publisher<'a>(&'a self, topic: &'a str) -> Pending<'a, Box<dyn Publisher>> {
        self.publisher(topic)
    }

    /// Removes a topic with everything in it.
    fn remove_topic<'a>(&'a self, topic: &'a str) -> Pending<'a, ()>;

    /// How many events a topic holds.
    fn stored<'a>(&'a self, topic: &'a str) -> Pending<'a, u64>;

    /// How many events a group has not settled.
    fn unsettled<'a>(&'a self, topic: &'a str, group: &'a str) -> Pending<'a, u64>;

    /// A publisher with a connection of its own.
    fn publisher<'a>(&'a self, topic: &'a str) -> Pending<'a, Box<dyn Publisher>>;

    /// A new group from the first event on, and its only member with a connection of its own.
    fn consumer<'a>(&'a self, topic: &'a str, group: &'a str) -> Pending<'a, Box<dyn Consumer>>;

    /// Reads all `count` events of a topic, without a group.
    fn replay<'a>(&'a self, topic: &'a str, count: u64, see: &'a mut See<'_>) -> Pending<'a, ()>;
}

/// Publishes on one connection.
pub(crate) trait Publisher: Send {
    /// How many events it sends at a time at most, where more are to be sent.
    fn chunk(&self) -> usize;

    /// Sends events. They are on their way when this is done; what comes back is ready when each is acknowledged.
    fn send<'a>(&'a mut self, payloads: &'a [Payload]) -> Pending<'a, Pending<'static, ()>>;
}

/// Consumes on one connection.
pub(crate) trait Consumer: Send {
    /// Waits for events, takes those that are there, and acknowledges each.
    fn take<'a>(&'a mut self, see: &'a mut See<'_>) -> Pending<'a, ()>;

    /// Waits until the server has the acknowledgements.
    fn finish(self: Box<Self>) -> Pending<'static, ()>;
}

impl Flavour {
    pub(crate) const ALL: [Self; 8] = [
        Self::PrombusFsync,
        Self::PrombusOs,
        Self::JetStreamDefault,
        Self::JetStreamAlways,
        Self::RedisEverysec,
        Self::RedisAlways,
        Self::BeforeFsync,
        Self::BeforeOs,
    ];

    /// Those that do not wait for the disk, and prombus that does: for what costs the peers the same with both promises.
    pub(crate) const ONE_EACH: [Self; 4] = [
        Self::PrombusFsync,
        Self::JetStreamDefault,
        Self::RedisEverysec,
        Self::BeforeFsync,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PrombusFsync => "prombus fsync",
            Self::PrombusOs => "prombus os",
            Self::JetStreamDefault => "jetstream default",
            Self::JetStreamAlways => "jetstream always",
            Self::RedisEverysec => "redis everysec",
            Self::RedisAlways => "redis always",
            Self::BeforeFsync => "before fsync",
            Self::BeforeOs => "before os",
        }
    }

    /// Whether it is measured only where an earlier build is given.
    pub(crate) fn is_before(self) -> bool {
        matches!(self, Self::BeforeFsync | Self::BeforeOs)
    }

    pub(crate) fn is_prombus(self) -> bool {
        matches!(self, Self::PrombusFsync | Self::PrombusOs)
    }

    /// Starts the server on a folder that is empty or that it was stopped on before. It answers when this is done.
    pub(crate) async fn start(
        self,
        programs: &Programs,
        folder: &Path,
    ) -> Outcome<Box<dyn System>> {
        std::fs::create_dir_all(folder)?;
        Ok(match self {
            Self::PrombusFsync => {
                Box::new(prombus::start(&programs.prombus, folder, "fsync").await?)
            }
            Self::PrombusOs => Box::new(prombus::start(&programs.prombus, folder, "os").await?),
            Self::JetStreamDefault => {
                Box::new(jetstream::start(&programs.nats, folder, false).await?)
            }
            Self::JetStreamAlways => {
                Box::new(jetstream::start(&programs.nats, folder, true).await?)
            }
            Self::RedisEverysec => {
                Box::new(redis::start(&programs.redis, folder, "everysec").await?)
            }
            Self::RedisAlways => Box::new(redis::start(&programs.redis, folder, "always").await?),
            Self::BeforeFsync => {
                Box::new(prombus::start(programs.before()?, folder, "fsync").await?)
            }
            Self::BeforeOs => Box::new(prombus::start(programs.before()?, folder, "os").await?),
        })
    }
}
