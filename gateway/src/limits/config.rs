//! The `[limits]` table of the configuration.

use prombus::BusOptions;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How large messages may be and how fast they may come. A rate that is left out does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Bytes of a payload's JSON.
    pub max_payload_bytes: usize,
    /// Bytes of a message on a socket.
    pub max_message_bytes: usize,
    /// Bytes of events that wait in memory for one subscription.
    pub subscription_bytes: usize,
    /// Bytes of events that wait in memory for all members of a group.
    pub group_bytes: usize,
    /// Bytes of events that wait in memory for all subscriptions, and in what sockets have to send.
    pub delivery_bytes: usize,
    /// An event is given up after this many deliveries that ended because the member or the server went away.
    pub max_lost_attempts: u32,
    /// A seek can be undone until the group has settled more positions than this after it.
    pub max_undo_settled: u64,
    /// Events that may wait to be published later.
    pub max_schedules: usize,
    /// Events published on one connection.
    pub conn_publish: Option<Rate>,
    /// Events delivered on one connection.
    pub conn_delivery: Option<Rate>,
    /// Events published to one topic, where no pattern says otherwise.
    pub topic_publish: Option<Rate>,
}

/// The rate of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// How many events may come at once.
    pub capacity: u32,
    /// How many a second in the long run.
    pub refill_per_sec: u32,
}

/// The largest `max_message_bytes`. What comes in one message is stored together, and what a store takes atomically
/// has a limit.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// The largest `max_payload_bytes`.
pub const MAX_PAYLOAD_BYTES: usize = 32 << 20;

/// A rate that would let nothing through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{name}: capacity and refill_per_sec have to be at least 1; leave it out for no limit")]
pub struct BadRate {
    /// Which limit.
    pub name: &'static str,
}

/// A size that no store could take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{name} may be at most {limit}")]
pub struct SizeTooLarge {
    /// Which limit.
    pub name: &'static str,
    /// Its bound.
    pub limit: usize,
}

/// A count that has to be at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{name} must be at least 1")]
pub struct ZeroCount {
    /// Which limit.
    pub name: &'static str,
}

/// What is wrong with the limits of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadLimit {
    /// A rate lets nothing through.
    #[error(transparent)]
    Rate(#[from] BadRate),
    /// A size is over its bound.
    #[error(transparent)]
    Size(#[from] SizeTooLarge),
    /// A count is zero.
    #[error(transparent)]
    Zero(#[from] ZeroCount),
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let bus = BusOptions::default();
        Self {
            max_payload_bytes: 1 << 20,
            max_message_bytes: 16 << 20,
            subscription_bytes: bus.subscription_bytes,
            group_bytes: bus.group_bytes,
            delivery_bytes: bus.delivery_bytes,
            max_lost_attempts: bus.max_lost_attempts,
            max_undo_settled: bus.max_undo_settled,
            max_schedules: bus.max_schedules,
            conn_publish: None,
            conn_delivery: None,
            topic_publish: None,
        }
    }
}

impl LimitsConfig {
    /// Refuses rates that make no sense and sizes that no store could take.
    pub fn check(&self) -> Result<(), BadLimit> {
        for (name, bytes, limit) in [
            (
                "limits.max_payload_bytes",
                self.max_payload_bytes,
                MAX_PAYLOAD_BYTES,
            ),
            (
                "limits.max_message_bytes",
                self.max_message_bytes,
                MAX_MESSAGE_BYTES,
            ),
        ] {
            if bytes > limit {
                return Err(SizeTooLarge { name, limit }.into());
            }
        }
        if self.max_lost_attempts == 0 {
            let name = "limits.max_lost_attempts";
            return Err(ZeroCount { name }.into());
        }
        for (name, rate) in [
            ("limits.conn_publish", self.conn_publish),
            ("limits.conn_delivery", self.conn_delivery),
            ("limits.topic_publish", self.topic_publish),
        ] {
            rate.map_or(Ok(()), |rate| rate.check(name))?;
        }
        Ok(())
    }
}

impl Rate {
    /// Refuses a rate that would let nothing through.
    pub fn check(&self, name: &'static str) -> Result<(), BadRate> {
        match self.capacity.min(self.refill_per_sec) {
            0 => Err(BadRate { name }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_configuration() {
        let json =
            r#"{"max_payload_bytes":5,"conn_publish":{"capacity":200,"refill_per_sec":100}}"#;
        let config: LimitsConfig = serde_json::from_str(json).expect("a configuration");
        let conn_publish = Rate {
            capacity: 200,
            refill_per_sec: 100,
        };
        let expected = LimitsConfig {
            max_payload_bytes: 5,
            conn_publish: Some(conn_publish),
            ..LimitsConfig::default()
        };
        assert_eq!(config, expected);
        assert_eq!(config.check(), Ok(()));
        let sizes = LimitsConfig {
            max_payload_bytes: MAX_PAYLOAD_BYTES,
            max_message_bytes: MAX_MESSAGE_BYTES,
            ..config
        };
        assert_eq!(sizes.check(), Ok(()));
        let too_large = LimitsConfig {
            max_payload_bytes: MAX_PAYLOAD_BYTES + 1,
            ..config
        };
        let refused = too_large.check().map_err(|bad| bad.to_string());
        assert_eq!(
            refused,
            Err("limits.max_payload_bytes may be at most 33554432".into())
        );
        let too_large = LimitsConfig {
            max_message_bytes: MAX_MESSAGE_BYTES + 1,
            ..config
        };
        assert!(too_large.check().is_err());
    }

    #[test]
    fn unknown_names_and_rates_of_nothing_are_refused() {
        let unknown = serde_json::from_str::<LimitsConfig>(r#"{"conn_publsh":null}"#);
        assert!(unknown.is_err_and(|error| error.to_string().contains("conn_publsh")));
        for json in [
            r#"{"topic_publish":{"capacity":0,"refill_per_sec":1}}"#,
            r#"{"topic_publish":{"capacity":1,"refill_per_sec":0}}"#,
        ] {
            let config: LimitsConfig = serde_json::from_str(json).expect("a configuration");
            let name = "limits.topic_publish";
            assert_eq!(config.check(), Err(BadRate { name }.into()));
        }
        assert!(serde_json::from_str::<Rate>(r#"{"capacity":1}"#).is_err());
        assert!(serde_json::from_str::<Rate>(r#"{"capacity":-1,"refill_per_sec":1}"#).is_err());
    }
}
