//! What a subscriber may ask for.

use crate::error::InvalidField;
use crate::filter::Filter;
use crate::group::settings::SettingsRequest;
use crate::group::{Ordering, StartAt};
use crate::schemas::UpcastFunction;

/// The most events a subscription may have in flight.
const MAX_IN_FLIGHT: usize = 1 << 20;
/// The most handlers that run at a time.
const MAX_CONCURRENCY: usize = 4_096;
/// The most topics and patterns in one subscription.
const MAX_TOPICS: usize = 1_024;
/// The longest name of a member.
const MAX_MEMBER_BYTES: usize = 256;

/// The options of a subscription.
///
/// `max_attempts`, `ordering`, `filter` and `partitioned` belong to the group: the subscription that makes it decides them, `None` is
/// what the group has, and another value is refused. They are changed with [`crate::Bus::configure_group`].
#[derive(Debug, Clone)]
pub struct SubscribeOptions {
    /// Where a new group begins. One that exists goes on from its cursor.
    pub from: StartAt,
    /// The most events that are handed over at a time.
    pub batch_size: usize,
    /// The most events that are delivered and not settled, over all topics of the subscription.
    pub max_in_flight: usize,
    /// How long a lease is; 30000 for a new group.
    pub ack_timeout_ms: Option<u64>,
    /// After how many failed deliveries an event is dead; 5 for a new group.
    pub max_attempts: Option<u32>,
    /// In which order events come; unordered for a new group.
    pub ordering: Option<Ordering>,
    /// Which events the group wants; all for a new group.
    pub filter: Option<Filter>,
    /// More topics, or patterns of them, that come in through the same subscription.
    pub topics: Vec<String>,
    /// Each partition of the topic goes to one member at a time: those of each member are reported by
    /// [`Subscription::next_assignment`](crate::Subscription::next_assignment). Not so for a new group.
    pub partitioned: Option<bool>,
    /// A handler that succeeds does not acknowledge; it has to do so itself.
    pub manual_ack: bool,
    /// How many handlers run at a time.
    pub concurrency: usize,
    /// How history and explanations name the subscriber.
    pub member: Option<String>,
    /// Events of earlier versions of their topic's schema come as ones of the latest, by the steps that the schemas
    /// declare.
    pub upcast: bool,
    /// Then this function may give events another payload.
    pub upcast_with: Option<UpcastFunction>,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            from: StartAt::Latest,
            batch_size: 100,
            max_in_flight: 1_000,
            ack_timeout_ms: None,
            max_attempts: None,
            ordering: None,
            filter: None,
            topics: Vec::new(),
            partitioned: None,
            manual_ack: false,
            concurrency: 1,
            member: None,
            upcast: false,
            upcast_with: None,
        }
    }
}

impl SubscribeOptions {
    pub(super) fn check(&self) -> Result<(), InvalidField> {
        self.from.check()?;
        self.settings().check()?;
        for (name, value, limit) in [
            ("batch_size", self.batch_size, MAX_IN_FLIGHT),
            ("max_in_flight", self.max_in_flight, MAX_IN_FLIGHT),
            ("concurrency", self.concurrency, MAX_CONCURRENCY),
        ] {
            if !(1..=limit).contains(&value) {
                return Err(InvalidField::new(name, format!("must be 1 to {limit}")));
            }
        }
        if self.topics.len() > MAX_TOPICS {
            return Err(InvalidField::new("topics", "must have at most 1024 items"));
        }
        if self
            .member
            .as_ref()
            .is_some_and(|name| !(1..=MAX_MEMBER_BYTES).contains(&name.len()))
        {
            return Err(InvalidField::new("member", "must have 1 to 256 bytes"));
        }
        Ok(())
    }

    /// What a member says for itself where the group's options are settled already.
    pub(super) fn own_settings(&self) -> SettingsRequest {
        let function = |filter: &&Filter| matches!(filter, Filter::Function(_));
        SettingsRequest {
            ack_timeout_ms: self.ack_timeout_ms,
            filter: self.filter.as_ref().filter(function).cloned(),
            ..SettingsRequest::default()
        }
    }

    pub(super) fn settings(&self) -> SettingsRequest {
        SettingsRequest {
            ack_timeout_ms: self.ack_timeout_ms,
            max_attempts: self.max_attempts,
            ordering: self.ordering,
            filter: self.filter.clone(),
            partitioned: self.partitioned,
        }
    }
}
