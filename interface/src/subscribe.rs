//! What a subscriber may ask for, and the limits of it.

use crate::group::{Ordering, StartAt};
use crate::invalid_field::InvalidField;

/// The most events of a subscription that are handed over at a time or in flight.
const MAX_IN_FLIGHT: usize = 1 << 20;
/// The most handlers of a subscription that run at a time.
const MAX_CONCURRENCY: usize = 10_000;
/// The most topics and patterns in one subscription.
const MAX_TOPICS: usize = 1_024;

/// The options of a subscription. A bus in process and the client of a server each have their own types for the filter
/// `F`, which in process may be a function, and the extras `X`; the rest of it is the same.
///
/// `max_attempts`, `ordering`, `filter` and `partitioned` belong to the group: the subscription that makes it decides
/// them, `None` is what the group has, and another value is refused. They are changed by configuring the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeOptions<F, X> {
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
    pub filter: Option<F>,
    /// More topics, or patterns of them, that come in through the same subscription.
    pub topics: Vec<String>,
    /// Each partition of the topic goes to one member at a time: those of each member are reported by the
    /// subscription's `next_assignment`. Not so for a new group.
    pub partitioned: Option<bool>,
    /// A handler that succeeds does not acknowledge; it has to do so itself.
    pub manual_ack: bool,
    /// How many handlers run at a time.
    pub concurrency: usize,
    /// Events of earlier versions of their topic's schema come as ones of the latest, by the steps that the schemas
    /// declare.
    pub upcast: bool,
    /// What only this kind of bus takes: in process a name for the member and an upcast function, from afar nothing.
    pub extras: X,
}

impl<F, X: Default> Default for SubscribeOptions<F, X> {
    fn default() -> Self {
        Self {
            from: StartAt::default(),
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
            upcast: false,
            extras: X::default(),
        }
    }
}

impl<F, X> SubscribeOptions<F, X> {
    /// Checks what has the same limits on every bus.
    pub fn check(&self) -> Result<(), InvalidField> {
        self.from.check()?;
        for (field, value, limit) in [
            ("batch_size", self.batch_size, MAX_IN_FLIGHT),
            ("max_in_flight", self.max_in_flight, MAX_IN_FLIGHT),
            ("concurrency", self.concurrency, MAX_CONCURRENCY),
        ] {
            if !(1..=limit).contains(&value) {
                return Err(InvalidField::new(field, format!("must be 1 to {limit}")));
            }
        }
        if self.topics.len() > MAX_TOPICS {
            let reason = format!("must have at most {MAX_TOPICS} items");
            return Err(InvalidField::new("topics", reason));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Options = SubscribeOptions<(), ()>;

    fn invalid(change: impl FnOnce(&mut Options)) -> Option<&'static str> {
        let mut options = Options::default();
        change(&mut options);
        options.check().err().map(|invalid| invalid.field)
    }

    #[test]
    fn limits_are_the_last_that_may_be_asked_for() {
        assert_eq!(invalid(|_| ()), None);
        for (concurrency, field) in [(0, Some("concurrency")), (10_000, None)] {
            assert_eq!(invalid(|options| options.concurrency = concurrency), field);
        }
        let (field, limit) = (Some("max_in_flight"), MAX_IN_FLIGHT);
        assert_eq!(invalid(|options| options.max_in_flight = limit), None);
        assert_eq!(invalid(|options| options.max_in_flight = limit + 1), field);
        assert_eq!(
            invalid(|options| options.batch_size = 0),
            Some("batch_size")
        );
        let topics = |count| vec!["t".to_owned(); count];
        assert_eq!(invalid(|options| options.topics = topics(MAX_TOPICS)), None);
        let too_many = invalid(|options| options.topics = topics(MAX_TOPICS + 1));
        assert_eq!(too_many, Some("topics"));
    }
}
