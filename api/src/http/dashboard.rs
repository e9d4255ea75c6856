//! What the dashboard asks for, and anybody else who wants the whole at a glance: `/history`, `/status`, `/access`,
//! `/attention`, `/histogram`, `/causes`, and the pages of `/topics` and `/groups`.

use super::query::{Query, QueryWriter, query};
use super::topics::TopicInfo;
use crate::code::Code;
use crate::error::ParseError;
use crate::record::Record;
use prombus_interface::schemas::{EventId, Flag, Group, Topic};
use prombus_interface::{GroupInfo, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

query! {
    /// The query of `GET /history`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
    pub struct HistoryQuery {
        /// Only samples taken after this epoch millisecond.
        pub after: Option<u64>,
        /// Go on with server-sent events, a History each, the first with what is recorded already.
        #[schemars(with = "Option<Flag>")]
        pub follow: bool,
    }
}

/// Samples of the last 15 minutes, oldest first; all lists have the same length. Counts are those since the sample
/// before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// The server's clock.
    pub now_ms: u64,
    /// How far samples are apart.
    pub interval_ms: u64,
    /// When each sample was taken, in epoch milliseconds.
    pub ts: Vec<u64>,
    /// Events stored.
    pub published: Vec<u64>,
    /// Leases given.
    pub delivered: Vec<u64>,
    /// Events acknowledged.
    pub acked: Vec<u64>,
    /// Negative acknowledgements.
    pub nacked: Vec<u64>,
    /// Deliveries that were not the event's first.
    pub redelivered: Vec<u64>,
    /// Events written to dead letter topics.
    pub dead_lettered: Vec<u64>,
    /// Publishes rejected and deliveries throttled by rate limits.
    pub rate_limited: Vec<u64>,
    /// Fsyncs.
    pub fsyncs: Vec<u64>,
    /// Their median in microseconds; 0 where there was none.
    pub fsync_p50_us: Vec<u64>,
    /// Their 99th percentile in microseconds.
    pub fsync_p99_us: Vec<u64>,
    /// Open sockets, at the time of the sample.
    pub connections: Vec<u64>,
    /// Bytes of the store.
    pub store_bytes: Vec<u64>,
    /// Unsettled positions of all durable groups.
    pub lag: Vec<u64>,
}

/// The reply of `GET /status`: the server in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    /// The version of the server.
    pub version: String,
    /// The server's clock.
    pub now_ms: u64,
    /// When it was started.
    pub started_ms: u64,
    /// Whether callers have to show a token.
    pub requires_token: bool,
    /// The largest payload.
    pub max_payload_bytes: u64,
    /// What the caller may do with all topics.
    pub access: Access,
    /// The store; only for callers that may read or administer all topics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreSummary>,
    /// The projectors that run in it; only for callers that may read or administer all topics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projectors: Vec<ProjectorSummary>,
}

/// A projector in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectorSummary {
    /// Its name.
    pub name: String,
    /// The topic that it reads.
    pub input: String,
    /// The topic that it emits to.
    pub output: String,
    /// The last position of the input whose results are committed.
    pub position: u64,
    /// How many events of the input are behind it.
    pub lag: u64,
    /// Events emitted since it first ran.
    pub emitted: u64,
    /// Events that nothing could be made of.
    pub rejected: u64,
    /// Why, for the last of them since the server was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_rejection: Option<String>,
    /// Whether another server runs it, so that this one waits.
    pub standby: bool,
    /// What keeps it from going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The store in short, for callers that may read or administer all topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoreSummary {
    /// Where it is.
    pub url: String,
    /// What its durability means, in words.
    pub durability: String,
    /// Bytes that it holds.
    pub bytes: u64,
    /// Topics in it.
    pub topics: u64,
    /// Findings of damage.
    pub damage: u64,
    /// Why it takes no writes, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The log that several servers share, where it is on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_log: Option<SharedLogSummary>,
}

/// The log of commits that several servers share, as one of them sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SharedLogSummary {
    /// The first position that it holds; what is before it was trimmed.
    pub first: u64,
    /// The last position.
    pub last: u64,
    /// The last position that is in this server's copy.
    pub applied: u64,
    /// Bytes that it takes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The position of the newest snapshot; 0 where there is none.
    pub snapshot: u64,
    /// When that snapshot was stored, in epoch milliseconds; 0 where there is none.
    pub snapshot_ms: u64,
    /// Bytes of commits since the last snapshot was begun.
    pub bytes_since_snapshot: u64,
}

/// What the caller may do: with all topics, or with those that the query names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// Whose token it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// When it expires, in epoch milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Publishing.
    pub publish: Allowed,
    /// Reading.
    pub subscribe: Allowed,
    /// Changing topics and groups.
    pub admin: Allowed,
}

/// How much of what was asked about is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Allowed {
    /// All of it.
    All,
    /// A part.
    Part,
    /// Nothing.
    Nothing,
}

/// The reply of `GET /attention`: what an operator should look at, the worst first; a limited number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attention {
    /// The server's clock.
    pub now_ms: u64,
    /// One for each concern, the worst first.
    pub findings: Vec<Finding>,
}

/// Something an operator should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// How bad it is.
    pub level: Level,
    /// For people.
    pub sentence: String,
    /// The topic it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Topic>")]
    pub topic: Option<String>,
    /// The group it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Group>")]
    pub group: Option<String>,
    /// Why a group does not flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The store takes no writes, or cannot write groups.
    StoreFailing,
    /// Something stored is damaged.
    Damage,
    /// A group has unsettled events and does not get on.
    StuckGroup,
    /// A group falls behind.
    GrowingLag,
    /// Dead letters that were neither redriven nor removed.
    DeadLetters,
    /// A rate limit was hit.
    RateLimited,
    /// A projector does not go on, or could make nothing of events.
    Projector,
}

/// How bad a finding is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something may stop working.
    Warning,
    /// Worth knowing.
    Notice,
}

query! {
    /// The query of `GET /histogram`.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct HistogramQuery {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The beginning; that of the oldest event by default.
        pub from_ts: Option<u64> as "fromTs",
        /// The end; that of the newest event by default.
        pub to_ts: Option<u64> as "toTs",
        /// How many parts the time is divided into.
        #[schemars(range(min = 1, max = 240), extend("default" = 60))]
        pub buckets: Option<u64>,
    }
}

/// How many positions a topic got over time. Positions that compaction or retention took are counted too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The beginning of the first bucket.
    pub from_ts: u64,
    /// The end, inclusive.
    pub to_ts: u64,
    /// The length of a bucket.
    pub bucket_ms: u64,
    /// Positions in each bucket.
    pub counts: Vec<u64>,
}

/// Which part of a list is wanted, in which order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageQuery {
    /// Rows to skip.
    pub offset: Option<u64>,
    /// The most rows of the page.
    pub limit: Option<u64>,
    /// The column that decides the order.
    pub sort: Option<String>,
    /// Largest first.
    pub descending: bool,
    /// `q`: names have to contain this, in any case.
    pub search: Option<String>,
    /// Topics have to begin with this.
    pub prefix: Option<String>,
}

/// The reply of `GET /topics` with a `limit`: a page of topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopicPage {
    /// How many topics fit, on all pages together.
    pub total: u64,
    /// Rows that were skipped.
    pub offset: u64,
    /// The page.
    pub topics: Vec<TopicRow>,
}

/// A topic with what it did in the last minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopicRow {
    /// The topic.
    #[serde(flatten)]
    pub info: TopicInfo,
    /// The time of its newest event that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ts: Option<u64>,
    /// Events of the last minute.
    pub per_minute: u64,
    /// Events of the last 15 minutes in slots of 10 s, oldest first; empty where there were none.
    pub recent: Vec<u64>,
}

/// The reply of `GET /groups` with a `limit`: a page of groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupPage {
    /// How many groups fit, on all pages together.
    pub total: u64,
    /// Rows that were skipped.
    pub offset: u64,
    /// The page.
    pub groups: Vec<GroupRow>,
}

/// A group with how it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupRow {
    /// The group.
    #[serde(flatten)]
    pub info: GroupInfo,
    /// What holds events back.
    pub reason: Reason,
    /// The same for people.
    pub sentence: String,
    /// The age of the oldest unsettled event; 0 where there is none or it is not known yet.
    pub oldest_unacked_ms: u64,
    /// Its lag over the last 15 minutes in slots of 10 s, oldest first; empty where it had none.
    pub recent_lag: Vec<u64>,
}

query! {
    /// The query of `GET /causes`.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct CausesQuery {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The event.
        #[schemars(with = "EventId")]
        pub id: String,
    }
}

/// The reply of `GET /causes`: an event, what caused it, and what it caused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Causes {
    /// The record itself.
    #[schemars(with = "Record")]
    pub event: Box<RawValue>,
    /// Records of the events that its `caused_by` names, as far as they are kept and the caller may read them.
    #[schemars(with = "Vec<Record>")]
    pub causes: Vec<Box<RawValue>>,
    /// Ids in `caused_by` that were not found.
    pub unknown: Vec<String>,
    /// Records whose `caused_by` names it, among those that were searched.
    #[schemars(with = "Vec<Record>")]
    pub effects: Vec<Box<RawValue>>,
    /// Whether everything that came after it was searched.
    pub complete: bool,
}

impl PageQuery {
    /// Reads the query.
    pub fn parse(query: &Query<'_>) -> Result<Self, ParseError> {
        let descending = match query.get("order") {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(_) => {
                let why = "order: expected asc or desc";
                return Err(ParseError::new(Code::BadFrame, why));
            }
        };
        let filled = |name: &str| {
            let value = query.get(name).filter(|value| !value.is_empty());
            value.map(str::to_owned)
        };
        Ok(Self {
            offset: query.number("offset")?,
            limit: query.number("limit")?,
            sort: filled("sort"),
            descending,
            search: filled("q"),
            prefix: filled("prefix"),
        })
    }

    /// Writes the query.
    pub fn to_query(&self) -> String {
        QueryWriter::default()
            .push_if("offset", self.offset)
            .push_if("limit", self.limit)
            .push_if("sort", self.sort.as_ref())
            .push("order", if self.descending { "desc" } else { "asc" })
            .push_if("q", self.search.as_ref())
            .push_if("prefix", self.prefix.as_ref())
            .finish()
    }
}
