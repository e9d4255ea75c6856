//! prombus: a durable event bus to embed. Events are stored in topics and delivered to durable groups, with leases,
//! acknowledgements, redelivery and dead letters, on whatever keeps the `Store` contract.
//!
//! Decisions about groups are plain functions of (state, input, now); one task per (topic, group) does what they say.

mod bus;
mod consumer;
mod core;
mod dead_letters;
mod dedupe;
pub mod error;
mod event;
mod exactly_once;
mod filter;
mod group;
mod json;
mod memory;
mod names;
mod options;
mod pattern;
mod projector;
mod publish;
mod state;
mod subscription;
mod topic;
mod topics;
mod typed;

pub use bus::{Bus, GroupMetrics};
pub use consumer::Consumer;
pub use dead_letters::{DeadLetterMarks, redrive_id};
pub use dedupe::{DEFAULT_DEDUPE_TTL_MS, Dedupe, DedupeStore, EmbeddedDedupe};
pub use event::EventFields;
pub use exactly_once::{EffectCounts, ExactlyOnce};
pub use filter::{FieldFilter, Filter, FilterFunction};
pub use group::{
    Attempt, Cursor, Ended, Explanation, GroupConfig, GroupCounts, GroupInfo, Lag, LaneInfo,
    MemberInfo, NodeProbe, Ordering, Reason, SeekEffect, StartAt, UnwrittenGroups,
};
pub use json::{MAX_DEPTH, compact as compact_json};
pub use memory::{BudgetHold, ByteBudget};
pub use names::{
    MAX_GROUP_BYTES, MAX_TOPIC_BYTES, check_group, check_topic, dead_letter_topic,
    is_dead_letter_topic,
};
pub use options::{Backoff, BusOptions, Limits};
pub use pattern::Pattern;
pub use projector::{
    Emitter, ProcessProjector, ProcessState, ProcessStatus, Processes, Projector, ProjectorHandle,
    ProjectorStatus, Rebuild,
};
pub use prombus_store::{
    Answer, Clock, Damage, DamageKind, Durability, Find, Id, LatestEvent, Page, ReadError,
    ReadFrom, ReadLimit, Store, StoreStatus, StoredEvent, SyncTimeCounts, SystemClock, TimeRange,
    TopicInfo,
};
pub use publish::{
    BatchFuture, PublishBatch, PublishFuture, PublishOptions, Published, is_tombstone,
};
pub use state::{
    Follow, KeyPage, KeyRange, KeyState, LoadState, SNAPSHOT_SEQ_HEADER, SNAPSHOT_TS_HEADER,
    SOURCE_SEQ_HEADER, TablePage,
};
pub use subscription::{
    AckPublish, AckPublishFuture, AckPublishesFuture, Context, Delivery, SettleFuture,
    SubscribeOptions, Subscription, SubscriptionControl,
};
pub use topic::TopicConfig;
pub use typed::{Topic, TypedSubscription};
