//! A topic's options and what is known about it.

/// How long compaction keeps a tombstone at least.
pub const TOMBSTONE_MS: u64 = 24 * 60 * 60 * 1000;

/// When a commit may be acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// After fsync, shared by everyone who waits. Survives a power cut.
    #[default]
    Fsync,
    /// After the write. Survives a crash of the process; a power cut may take the last moments.
    Os,
}

/// How a topic is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicOptions {
    /// When a publish to it is acknowledged.
    pub durability: Durability,
    /// Events older than this are forgotten.
    pub retention_ms: Option<u64>,
    /// The oldest events are forgotten while the topic holds more bytes than this.
    pub max_bytes: Option<u64>,
    /// The oldest events are forgotten while the topic holds more events than this.
    pub max_events: Option<u64>,
    /// Only the latest event of each key has to be kept.
    pub compaction: bool,
    /// What the layers above keep with the topic, as JSON text; opaque here.
    pub attributes: String,
}

/// A topic as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicInfo {
    /// Its name.
    pub name: std::sync::Arc<str>,
    /// Its options.
    pub options: TopicOptions,
    /// Tells it from every earlier topic of the same name in the same store.
    pub incarnation: u64,
    /// The oldest position that may still be read; `tail_seq + 1` where nothing is kept.
    pub first_seq: u64,
    /// The newest position that readers see; 0 before the first event.
    pub tail_seq: u64,
    /// How many events are kept. Where compaction has removed some, they are not counted.
    pub events: u64,
    /// About how many bytes they take on disk.
    pub bytes: u64,
}
