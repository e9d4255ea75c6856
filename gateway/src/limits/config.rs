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

/// A rate that would let nothing through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{name}: capacity and refill_per_sec have to be at least 1; leave it out for no limit")]
pub struct BadRate {
    /// Which limit.
    pub name: &'static str,
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
            conn_publish: None,
            conn_delivery: None,
            topic_publish: None,
        }
    }
}

impl LimitsConfig {
    /// Refuses rates that make no sense.
    pub fn check(&self) -> Result<(), BadRate> {
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
            assert_eq!(config.check(), Err(BadRate { name }));
        }
        assert!(serde_json::from_str::<Rate>(r#"{"capacity":1}"#).is_err());
        assert!(serde_json::from_str::<Rate>(r#"{"capacity":-1,"refill_per_sec":1}"#).is_err());
    }
}
