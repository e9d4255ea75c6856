//! How a bus is set up: its clock, its limits, what new topics look like and how groups behave.

use crate::error::{InvalidField, InvalidPattern};
use crate::topic::TopicConfig;
use prombus_interface::Pattern;
use prombus_interface::names::is_dead_letter_topic;
use prombus_store::{Clock, MAX_ID_BYTES, SystemClock};
use std::fmt;
use std::sync::Arc;

/// The longest that a group's changes may wait to be written.
const MAX_ACK_FLUSH_MS: u64 = 60_000;
/// The largest payload: with everything else that an event may have it fits into a record of the log, which holds
/// 64 MiB, also as part of a dead letter.
const MAX_PAYLOAD_BYTES: usize = 32 << 20;
/// The most bytes that headers, tags or causes of an event may have together. JSON spells a byte with up to six.
const MAX_FIELD_BYTES: usize = 512 << 10;
/// The longest session id.
const MAX_SID_BYTES: usize = 1024;
/// What a dead letter may have beside the payload of its event: headers, tags and causes at their limits as JSON spells
/// them, and the history.
const DEAD_LETTER_BYTES: usize = 256 << 10;
/// The widest window of unsettled events per group.
pub(crate) const MAX_GROUP_WINDOW: usize = 1 << 20;

/// The options of a bus. All have defaults.
#[derive(Clone)]
pub struct BusOptions {
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// How large things may be.
    pub limits: Limits,
    /// Whether the first publish to a topic makes it.
    pub auto_create_topics: bool,
    /// What new topics look like: the first pattern that matches wins, else the defaults of [`TopicConfig`].
    pub topic_defaults: Vec<(String, TopicConfig)>,
    /// Acknowledgements and leases are written this long after they happened, at the latest.
    pub ack_flush_ms: u64,
    /// The most unsettled events that one group keeps track of. It bounds the memory of a group however far behind
    /// it is: when it is reached, the group reads on only when something has been settled.
    pub group_window: usize,
    /// Bytes of events that wait in memory for one subscription. Where this or one of the next two is used up, a
    /// subscription for which nothing waits still gets one event.
    pub subscription_bytes: usize,
    /// Bytes of events that wait in memory for all subscriptions of a group.
    pub group_bytes: usize,
    /// Bytes of events that wait in memory for all subscriptions of the bus, and in what a gateway has to send.
    pub delivery_bytes: usize,
    /// How long a failed event waits for its next delivery.
    pub backoff: Backoff,
    /// An event is given up after this many deliveries that ended because the member or the server went away; fewer
    /// of them count as attempts, but do not give it up by themselves.
    pub max_lost_attempts: u32,
    /// A seek can be undone until the group has settled more positions than this after it: then the undo would take
    /// back work rather than a slip.
    pub max_undo_settled: u64,
    /// A subscription that follows a pattern is served from about so many topics at a time; more are joined where it has
    /// room for their events, and those that have nothing for it make room for others.
    pub pattern_topics: usize,
    /// A group of which only followers of patterns are members, and for which there is nothing to do, takes no memory after
    /// this long.
    pub dormant_after_ms: u64,
    /// The most keys whose states one pass of the snapshotter holds in memory and stores together. A topic where more have
    /// changed since the last snapshot takes several passes.
    pub snapshot_pass_keys: usize,
    /// The most schedules that may wait. Each takes about a hundred bytes of memory, whatever its event has.
    pub max_schedules: usize,
}

/// How large things may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a payload's JSON.
    pub max_payload_bytes: usize,
    /// Headers of an event.
    pub max_headers: usize,
    /// Bytes of all names and values of an event's headers.
    pub max_header_bytes: usize,
    /// Bytes of a key.
    pub max_key_bytes: usize,
    /// Bytes of a session id.
    pub max_sid_bytes: usize,
    /// Tags of an event.
    pub max_tags: usize,
    /// Bytes of one tag.
    pub max_tag_bytes: usize,
    /// Ids in `caused_by`.
    pub max_causes: usize,
}

/// How long a failed event waits: `first_ms`, doubling with each attempt up to `longest_ms`, with jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first_ms: u64,
    /// The most it grows to.
    pub longest_ms: u64,
}

impl Default for BusOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            limits: Limits::default(),
            auto_create_topics: true,
            topic_defaults: Vec::new(),
            ack_flush_ms: 100,
            group_window: 32_768,
            subscription_bytes: 1 << 20,
            group_bytes: 16 << 20,
            delivery_bytes: 96 << 20,
            backoff: Backoff::default(),
            max_lost_attempts: 20,
            max_undo_settled: 100_000,
            pattern_topics: 1_024,
            dormant_after_ms: 10_000,
            snapshot_pass_keys: 131_072,
            max_schedules: 1_000_000,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_payload_bytes: 1 << 20,
            max_headers: 64,
            max_header_bytes: 16 << 10,
            max_key_bytes: 512,
            max_sid_bytes: 256,
            max_tags: 64,
            max_tag_bytes: 256,
            max_causes: 64,
        }
    }
}

impl Limits {
    /// How large a payload of this topic may be. A dead letter has a whole event inside it, so that what was exported can
    /// be imported again.
    pub fn payload_bytes_of(&self, topic: &str) -> usize {
        let around = if is_dead_letter_topic(topic) {
            DEAD_LETTER_BYTES
        } else {
            0
        };
        self.max_payload_bytes.saturating_add(around)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first_ms: 20,
            longest_ms: 30_000,
        }
    }
}

impl BusOptions {
    pub(crate) fn check(&self) -> Result<(), InvalidField> {
        if self.ack_flush_ms > MAX_ACK_FLUSH_MS {
            return Err(InvalidField::new("ack_flush_ms", "must be at most 60000"));
        }
        if !(1..=MAX_GROUP_WINDOW).contains(&self.group_window) {
            return Err(InvalidField::new("group_window", "must be 1 to 1048576"));
        }
        for (name, bytes) in [
            ("subscription_bytes", self.subscription_bytes),
            ("group_bytes", self.group_bytes),
            ("delivery_bytes", self.delivery_bytes),
        ] {
            if bytes == 0 {
                return Err(InvalidField::new(name, "must be at least 1"));
            }
        }
        if self.backoff.first_ms == 0 || self.backoff.longest_ms < self.backoff.first_ms {
            let reason = "first_ms must be at least 1 and longest_ms at least first_ms";
            return Err(InvalidField::new("backoff", reason));
        }
        if self.max_lost_attempts == 0 {
            let reason = "must be at least 1";
            return Err(InvalidField::new("max_lost_attempts", reason));
        }
        if self.pattern_topics == 0 {
            return Err(InvalidField::new("pattern_topics", "must be at least 1"));
        }
        if self.snapshot_pass_keys == 0 {
            return Err(InvalidField::new(
                "snapshot_pass_keys",
                "must be at least 1",
            ));
        }
        self.limits.check()?;
        for (name, config) in &self.topic_defaults {
            config.check()?;
            let shared = config.snapshot_topic.is_some() && Pattern::is_pattern(name);
            if shared || config.snapshot_topic.as_ref() == Some(name) {
                let reason =
                    "a snapshot topic belongs to one other topic; name the topic, not a pattern";
                return Err(InvalidField::new("snapshot_topic", reason));
            }
        }
        Ok(())
    }

    pub(crate) fn compiled_defaults(&self) -> Result<Vec<(Pattern, TopicConfig)>, InvalidPattern> {
        self.topic_defaults
            .iter()
            .map(|(pattern, config)| Ok((Pattern::for_topics(pattern)?, config.clone())))
            .collect()
    }
}

impl Limits {
    /// Refuses limits under which an event could be published that no store can hold.
    fn check(&self) -> Result<(), InvalidField> {
        if self.max_payload_bytes < 4 {
            let reason = "must be at least 4, the size of null";
            return Err(InvalidField::new("max_payload_bytes", reason));
        }
        // The record's head has 16 bits for the length of a key as JSON spells it, which is up to six times as long.
        let tag_bytes = self.max_tags.saturating_mul(self.max_tag_bytes);
        let cause_bytes = self.max_causes.saturating_mul(MAX_ID_BYTES);
        for (name, bytes, limit, reason) in [
            (
                "max_payload_bytes",
                self.max_payload_bytes,
                MAX_PAYLOAD_BYTES,
                "must be at most 33554432 (32 MiB)",
            ),
            (
                "max_key_bytes",
                self.max_key_bytes,
                512,
                "must be at most 512",
            ),
            (
                "max_sid_bytes",
                self.max_sid_bytes,
                MAX_SID_BYTES,
                "must be at most 1024",
            ),
            (
                "max_header_bytes",
                self.max_header_bytes,
                MAX_FIELD_BYTES,
                "must be at most 524288",
            ),
            (
                "max_tags",
                tag_bytes,
                MAX_FIELD_BYTES,
                "max_tags times max_tag_bytes must be at most 524288",
            ),
            (
                "max_causes",
                cause_bytes,
                MAX_FIELD_BYTES,
                "must be at most 8192",
            ),
        ] {
            if bytes > limit {
                return Err(InvalidField::new(name, reason));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for BusOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusOptions")
            .field("limits", &self.limits)
            .field("auto_create_topics", &self.auto_create_topics)
            .field("topic_defaults", &self.topic_defaults)
            .field("ack_flush_ms", &self.ack_flush_ms)
            .field("group_window", &self.group_window)
            .field("subscription_bytes", &self.subscription_bytes)
            .field("group_bytes", &self.group_bytes)
            .field("delivery_bytes", &self.delivery_bytes)
            .field("backoff", &self.backoff)
            .field("max_lost_attempts", &self.max_lost_attempts)
            .field("max_undo_settled", &self.max_undo_settled)
            .field("pattern_topics", &self.pattern_topics)
            .field("dormant_after_ms", &self.dormant_after_ms)
            .field("snapshot_pass_keys", &self.snapshot_pass_keys)
            .finish_non_exhaustive()
    }
}
