//! prombus: a durable event bus to embed. Events are stored in topics and delivered to durable groups, with leases,
//! acknowledgements, redelivery and dead letters, on whatever keeps the `Store` contract.
//!
//! ```
//! use prombus::{Bus, BusOptions, PublishOptions, StartAt, SubscribeOptions, SystemClock};
//! use prombus_store::memory::MemoryStore;
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // `Bus::open_url("file:./data", …)` keeps events on disk, with the feature `file`.
//! let store = MemoryStore::new(Arc::new(SystemClock));
//! let bus = Bus::open(Arc::new(store), BusOptions::default())?;
//!
//! let published = bus.publish("orders", &17, &PublishOptions::default()).await?;
//! assert_eq!(published.seq, 1);
//!
//! // A durable group: every event comes until it is acknowledged.
//! let options = SubscribeOptions { from: StartAt::Earliest, ..SubscribeOptions::default() };
//! let orders = bus.subscribe("orders", "billing", options).await?;
//! let delivery = orders.next().await.ok_or("the bus is closed")?;
//! assert_eq!(delivery.event.payload(), "17");
//! delivery.ack();
//!
//! bus.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Decisions about groups are plain functions of (state, input, now); one task per (topic, group) does what they say.

mod bus;
mod core;
mod dead_letters;
mod dedupe;
mod endpoint;
pub mod error;
mod filter;
mod group;
mod json;
mod memory;
mod options;
mod partition;
mod pending;
mod projector;
mod publish;
mod rfc3339;
mod schedule;
mod schemas;
mod shadow;
mod state;
mod subscription;
mod topic;
mod topics;

pub use bus::{Bus, GroupMetrics};
pub use dead_letters::{DeadLetterMarks, redrive_id};
pub use dedupe::EmbeddedDedupe;
pub use endpoint::{Consumer, ExactlyOnce, TypedSubscription};
pub use filter::{Filter, FilterFunction};
pub use group::{
    Assignment, Attempt, Ended, GroupConfig, LinkReceiver, LinkSender, NodeDialer, NodeInfo,
    NodeLink, NodeProbe, UnwrittenGroups,
};
pub use json::{MAX_DEPTH, compact as compact_json};
pub use memory::{BudgetHold, ByteBudget};
pub use options::{Backoff, BusOptions, Limits};
pub use partition::partition_of;
pub use pending::{Pending, PendingAll};
pub use projector::{
    Emitter, ProcessProjector, ProcessState, ProcessStatus, Processes, Projector, ProjectorHandle,
    ProjectorInfo, ProjectorStatus, Rebuild,
};
pub use prombus_interface::names::{
    MAX_GROUP_BYTES, MAX_TOPIC_BYTES, check_group, check_topic, dead_letter_topic,
    is_dead_letter_topic, is_internal_topic,
};
pub use prombus_interface::{
    Cursor, DEFAULT_DEDUPE_TTL_MS, Dedupe, DedupeStore, EffectCounts, EventFields, Explanation,
    FieldFilter, GroupCounts, GroupInfo, Lag, LaneInfo, MemberInfo, Nack, Ordering, Pattern,
    Reason, Retry, SeekEffect, SettleOp, StartAt, Topic,
};
pub use prombus_schema::{Compatibility, Finding, Rule, UnknownCompatibility};
pub use prombus_store::{
    Answer, Clock, Damage, DamageKind, Durability, Find, Id, LatestEvent, LockExt, Page, ReadError,
    ReadFrom, ReadLimit, RwLockExt, Store, StoreStatus, StoredEvent, SyncTimeCounts, SystemClock,
    TimeRange, TopicInfo,
};
pub use publish::{
    BatchFuture, PublishBatch, PublishFuture, PublishOptions, Published, is_tombstone,
};
pub use schedule::{PendingSchedule, Schedule, SchedulePage, Scheduled};
pub use schemas::{
    CheckedSchema, FailingEvent, LiveGroup, MAX_SCHEMA_VERSIONS, MAX_TOPIC_SCHEMA_BYTES,
    RegisterSchema, RegisteredSchema, RetainedCheck, SCHEMA_VERSION_HEADER, SchemaInfo,
    SchemaVersion, UPCAST_FROM_HEADER, UpcastFunction,
};
pub use shadow::{Pace, ShadowGroup, ShadowOptions};
pub use state::{
    DiffPage, Follow, KeyChange, KeyPage, KeyRange, KeyState, LoadState, SNAPSHOT_SEQ_HEADER,
    SNAPSHOT_TS_HEADER, SOURCE_SEQ_HEADER, TablePage,
};
pub use subscription::{
    AckPublish, AckPublishFuture, AckPublishesFuture, Context, Delivery, SettleFuture,
    SubscribeExtras, SubscribeOptions, Subscription, SubscriptionControl,
};
pub use topic::TopicConfig;
