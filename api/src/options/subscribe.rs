//! What a subscriber may ask for.

use super::position::{PositionParts, write_place};
use crate::scan::{FromJson, ScanError, Scanner, words};
use crate::write::{ObjectWriter, ToJson};
use prombus_interface::{FieldFilter, Ordering, StartAt};

/// The options of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubscribeOptions {
    /// Where a new group begins: `from` with `ts`, `afterId` or `seq`.
    pub start: Option<StartAt>,
    /// `batchSize`: the most events that are handed over at a time.
    pub batch_size: Option<usize>,
    /// `maxInFlight`: the most events that are delivered and not settled.
    pub max_in_flight: Option<usize>,
    /// `ackTimeoutMs`: how long a lease is.
    pub ack_timeout_ms: Option<u64>,
    /// `maxAttempts`: after how many failed deliveries an event is dead.
    pub max_attempts: Option<u32>,
    /// `manualAck`: the subscriber acknowledges itself. Over the gateway it always does.
    pub manual_ack: Option<bool>,
    /// Which events the group wants.
    pub filter: Option<FieldFilter>,
    /// More topics, or patterns of them, that come in through the same subscription.
    pub topics: Vec<String>,
    /// In which order events come.
    pub ordering: Option<Ordering>,
    /// Events of earlier versions of their topic's schema come as ones of the latest.
    pub upcast: Option<bool>,
    /// Each partition of the topic goes to one member at a time.
    pub partitioned: Option<bool>,
}

words!(wire Ordering: None "none", Key "key"; "none or key");

impl SubscribeOptions {
    /// The names of the options.
    pub(crate) const FIELDS: &'static [&'static str] = &[
        "from",
        "ts",
        "afterId",
        "seq",
        "batchSize",
        "maxInFlight",
        "ackTimeoutMs",
        "maxAttempts",
        "manualAck",
        "filter",
        "topics",
        "ordering",
        "upcast",
        "partitioned",
    ];
}

impl<'a> FromJson<'a> for SubscribeOptions {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut options = Self::default();
        if scanner.null() {
            return Ok(options);
        }
        let mut start = PositionParts::default();
        scanner.object(|scanner, name| match name {
            "batchSize" => scanner.fill(&mut options.batch_size),
            "maxInFlight" => scanner.fill(&mut options.max_in_flight),
            "ackTimeoutMs" => scanner.fill(&mut options.ack_timeout_ms),
            "maxAttempts" => scanner.fill(&mut options.max_attempts),
            "manualAck" => scanner.fill(&mut options.manual_ack),
            "filter" => scanner.fill(&mut options.filter),
            "topics" => scanner.fill(&mut options.topics),
            "ordering" => scanner.fill(&mut options.ordering),
            "upcast" => scanner.fill(&mut options.upcast),
            "partitioned" => scanner.fill(&mut options.partitioned),
            _ => match start.take(scanner, name) {
                Some(taken) => taken,
                None => Err(ScanError::unknown(name, Self::FIELDS, &[])),
            },
        })?;
        options.start = start.position()?;
        Ok(options)
    }
}

impl ToJson for SubscribeOptions {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        if let Some(start) = &self.start {
            write_place(start, &mut object);
        }
        object
            .field("batchSize", &self.batch_size)
            .field("maxInFlight", &self.max_in_flight)
            .field("ackTimeoutMs", &self.ack_timeout_ms)
            .field("maxAttempts", &self.max_attempts)
            .field("manualAck", &self.manual_ack)
            .field("filter", &self.filter)
            .field("topics", &self.topics)
            .field("ordering", &self.ordering)
            .field("upcast", &self.upcast)
            .field("partitioned", &self.partitioned)
            .end();
    }

    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}
