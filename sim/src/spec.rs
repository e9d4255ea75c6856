//! What a run consists of: topics, groups and their members. Fixed, so that a seed chooses what happens and not what
//! there is.

use prombus::{FieldFilter, Filter, Ordering, StartAt, SubscribeExtras, SubscribeOptions};

/// The topics that operations act on.
pub(crate) const TOPICS: [&str; 5] = ["a.x", "a.y", "b.1", "b.2", "b.3"];
/// The keys of events.
pub(crate) const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];
/// A key whose events fail while others are to flow.
pub(crate) const POISON: &str = "poison";
/// The tag that the filtered group wants.
pub(crate) const WANTED_TAG: &str = "w";
/// The most unsettled events that a group keeps track of: small, so that it fills.
pub(crate) const WINDOW: usize = 24;

/// A group.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) group: &'static str,
    /// A topic or a pattern.
    pub(crate) topic: &'static str,
    pub(crate) from_earliest: bool,
    pub(crate) by_key: bool,
    pub(crate) filtered: bool,
    pub(crate) members: usize,
    pub(crate) max_in_flight: usize,
    pub(crate) ack_timeout_ms: u64,
}

const PLAIN: Spec = Spec {
    group: "plain",
    topic: "a.x",
    from_earliest: true,
    by_key: false,
    filtered: false,
    members: 3,
    max_in_flight: 3,
    ack_timeout_ms: 1_500,
};

pub(crate) const SPECS: [Spec; 6] = [
    PLAIN,
    Spec {
        group: "keyed",
        by_key: true,
        members: 2,
        max_in_flight: 4,
        ..PLAIN
    },
    Spec {
        group: "wanted",
        topic: "a.y",
        filtered: true,
        members: 2,
        ..PLAIN
    },
    Spec {
        group: "late",
        topic: "a.y",
        from_earliest: false,
        members: 1,
        max_in_flight: 1,
        ..PLAIN
    },
    Spec {
        group: "all",
        topic: "a.*",
        members: 2,
        max_in_flight: 2,
        ack_timeout_ms: 4_000,
        ..PLAIN
    },
    Spec {
        group: "new",
        topic: "b.*",
        from_earliest: false,
        members: 1,
        max_in_flight: 5,
        ..PLAIN
    },
];

impl Spec {
    pub(crate) fn is_pattern(&self) -> bool {
        self.topic.contains('*')
    }

    /// Whether its subscriptions follow this topic.
    pub(crate) fn follows(&self, topic: &str) -> bool {
        match self.topic.strip_suffix('*') {
            Some(prefix) => topic.starts_with(prefix),
            None => self.topic == topic,
        }
    }

    pub(crate) fn options(&self, member: &str) -> SubscribeOptions {
        SubscribeOptions {
            from: if self.from_earliest {
                StartAt::Earliest
            } else {
                StartAt::Latest
            },
            batch_size: 4,
            max_in_flight: self.max_in_flight,
            ack_timeout_ms: Some(self.ack_timeout_ms),
            max_attempts: Some(4),
            ordering: self.by_key.then_some(Ordering::Key),
            filter: self.filtered.then(|| {
                Filter::Fields(FieldFilter {
                    tags: vec![WANTED_TAG.to_owned()],
                    ..FieldFilter::default()
                })
            }),
            extras: SubscribeExtras::member(member),
            ..SubscribeOptions::default()
        }
    }
}
