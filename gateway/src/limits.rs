//! Rate limits: token buckets per connection for publishing and for delivery, and per topic for publishing. None by
//! default.
//!
//! Publishing over a limit is rejected with the time to retry; delivery over it waits. Time is passed in, and is monotonic: a wall
//! clock that is set would freeze or flood.

mod bucket;
mod config;
mod topics;

pub use bucket::{Bucket, RetryAfter};
pub use config::{
    BadLimit, BadRate, LimitsConfig, MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES, Rate, SizeTooLarge,
    ZeroCount,
};
pub use topics::TopicLimits;

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Publishing on one connection.
    ConnPublish,
    /// Delivery on one connection.
    ConnDelivery,
    /// Publishing to one topic.
    TopicPublish,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 3] = [Self::ConnPublish, Self::ConnDelivery, Self::TopicPublish];

    /// Its name in the configuration and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConnPublish => "conn_publish",
            Self::ConnDelivery => "conn_delivery",
            Self::TopicPublish => "topic_publish",
        }
    }
}

/// A publish came too fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rate limit {} reached, retry in {} ms", .limit.name(), .retry.ms)]
pub struct RateLimited {
    /// Which limit it reached.
    pub limit: Limit,
    /// When to come back.
    pub retry: RetryAfter,
}

/// The buckets of one connection.
#[derive(Debug, Default)]
pub struct ConnectionLimits {
    publish: Option<Bucket>,
    delivery: Option<Bucket>,
}

impl ConnectionLimits {
    /// Full buckets for a new connection.
    pub fn new(config: &LimitsConfig, now_ms: u64) -> Self {
        let bucket = |rate: Rate| Bucket::full(rate, now_ms);
        Self {
            publish: config.conn_publish.map(bucket),
            delivery: config.conn_delivery.map(bucket),
        }
    }

    /// Publishes `events` to a topic, if the connection's limit and the topic's both allow it. One that rejects costs
    /// nothing in the other.
    pub fn publish(
        &mut self,
        topics: &TopicLimits,
        topic: &str,
        events: u32,
        now_ms: u64,
    ) -> Result<(), RateLimited> {
        let limited = |limit| move |retry| RateLimited { limit, retry };
        if let Some(bucket) = &mut self.publish {
            bucket
                .has(events, now_ms)
                .map_err(limited(Limit::ConnPublish))?;
        }
        topics
            .take(topic, events, now_ms)
            .map_err(limited(Limit::TopicPublish))?;
        match &mut self.publish {
            Some(bucket) => bucket
                .take(events, now_ms)
                .map_err(limited(Limit::ConnPublish)),
            None => Ok(()),
        }
    }

    /// How many of `events` may be delivered now; where it is none, when to retry. They are taken from the bucket.
    pub fn deliver(&mut self, events: u32, now_ms: u64) -> Result<u32, RetryAfter> {
        match &mut self.delivery {
            Some(bucket) => bucket.take_up_to(events, now_ms),
            None => Ok(events),
        }
    }

    /// Takes back what [`Self::deliver`] allowed and nothing was there for.
    pub fn give_back_deliveries(&mut self, events: u32) {
        if let Some(bucket) = &mut self.delivery {
            bucket.give_back(events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prombus::Pattern;

    fn rate(capacity: u32) -> Rate {
        Rate {
            capacity,
            refill_per_sec: 10,
        }
    }

    #[test]
    fn nothing_is_limited_by_default() {
        let topics = TopicLimits::new(None, Vec::new());
        let mut connection = ConnectionLimits::new(&LimitsConfig::default(), 0);
        for _ in 0..1_000 {
            assert_eq!(connection.publish(&topics, "t", u32::MAX, 0), Ok(()));
            assert_eq!(connection.deliver(u32::MAX, 0), Ok(u32::MAX));
        }
    }

    #[test]
    fn a_refusal_costs_nothing_in_the_other_bucket() {
        let patterns = vec![(Pattern::for_topics("small.*").expect("a pattern"), rate(1))];
        let topics = TopicLimits::new(Some(rate(5)), patterns);
        let config = LimitsConfig {
            conn_publish: Some(rate(4)),
            ..LimitsConfig::default()
        };
        let mut connection = ConnectionLimits::new(&config, 0);
        let refused = |limit, ms| {
            let retry = RetryAfter { ms };
            Err(RateLimited { limit, retry })
        };
        assert_eq!(connection.publish(&topics, "small.a", 1, 0), Ok(()));
        for _ in 0..3 {
            let again = connection.publish(&topics, "small.a", 1, 0);
            assert_eq!(again, refused(Limit::TopicPublish, 100));
        }
        assert_eq!(
            connection.publish(&topics, "large", 3, 0),
            Ok(()),
            "3 of 4 were left"
        );
        let over = connection.publish(&topics, "large", 1, 0);
        assert_eq!(over, refused(Limit::ConnPublish, 100));
        let mut other = ConnectionLimits::new(&config, 0);
        assert_eq!(
            other.publish(&topics, "large", 2, 0),
            Ok(()),
            "2 of 5 were left"
        );
        let message = refused(Limit::ConnPublish, 7)
            .expect_err("a refusal")
            .to_string();
        assert_eq!(message, "rate limit conn_publish reached, retry in 7 ms");
    }

    #[test]
    fn delivery_is_slowed_and_goes_on() {
        let config = LimitsConfig {
            conn_delivery: Some(rate(3)),
            ..LimitsConfig::default()
        };
        let mut connection = ConnectionLimits::new(&config, 0);
        assert_eq!(connection.deliver(0, 0), Ok(0));
        assert_eq!(connection.deliver(5, 0), Ok(3));
        assert_eq!(connection.deliver(2, 0), Err(RetryAfter { ms: 100 }));
        assert_eq!(connection.deliver(2, 99), Err(RetryAfter { ms: 1 }));
        assert_eq!(connection.deliver(2, 100), Ok(1));
        connection.give_back_deliveries(1);
        assert_eq!(connection.deliver(2, 100), Ok(1));
        connection.give_back_deliveries(9);
        assert_eq!(connection.deliver(9, 100), Ok(3));
    }
}
