//! The remote client of prombus: publish and subscribe over WebSocket, in the shape of the bus in process.
//!
//! ```no_run
//! use prombus_client::{Client, ClientOptions, PublishOptions, StartAt, SubscribeOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("ws://127.0.0.1:8090", ClientOptions::default()).await?;
//!
//! // Awaited: the event is durable when this returns.
//! let stored = client.publish("greetings", "hello", &PublishOptions::default()).await?;
//! println!("{} is number {}", stored.id, stored.seq);
//!
//! // Pipelined: all are on their way before the first answer is awaited.
//! let answers: Vec<_> = (0..100)
//!     .map(|number| client.publish("numbers", &number, &PublishOptions::default()))
//!     .collect();
//! for answer in answers {
//!     answer.await?;
//! }
//!
//! // A durable group: every event comes until it is acknowledged.
//! let options = SubscribeOptions { from: StartAt::Earliest, ..SubscribeOptions::default() };
//! let numbers = client.subscribe("numbers", "adders", options).await?;
//! let mut sum = 0;
//! for _ in 0..100 {
//!     let Some(delivery) = numbers.next().await else { break };
//!     sum += delivery.value::<u64>()?;
//!     delivery.ack();
//! }
//!
//! client.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Topics and groups are made, changed and removed, events replayed, keys looked up and dead letters redriven as on a bus
//! in process; these go over HTTP, to the same address.
//!
//! A broken connection is made again, with pauses that grow. What was published and not acknowledged is sent again, under
//! an id that keeps the server from storing it twice. Subscriptions go on; what was delivered and not acknowledged
//! comes again, and what was acknowledged does not.

mod admin;
mod bus;
mod client;
mod core;
mod endpoint;
mod error;
mod http_client;
mod id;
mod link;
mod options;
mod partition_hooks;
mod publish;
mod reads;
mod schedules;
mod schemas;
mod socket;
mod state;
mod subscription;
mod token;

pub use bus::{Consumer, ExactlyOnce, TypedSubscription};
pub use client::Client;
pub use error::{
    AckPublishError, BadUrl, BadValue, ConnectError, FollowError, InvalidField, PublishAtomicError,
    PublishError, RequestError, ServerError, SettleError, StateMoved, SubscribeError,
    TopicReplaced,
};
pub use options::{ClientOptions, Reconnect, TlsOptions};
pub use partition_hooks::PartitionHooks;
pub use prombus_api::http::{
    Age, ChangedKey, DiffPage, DiffQuery, Durability, FindBy, FindQuery, GroupChange, ListPage,
    ListQuery, Node, Pace, PendingSchedule, Redrive, RedriveReply, RegisteredSchema,
    RemovedLetters, SchedulePage, SchedulesQuery, SchemaCheck, SchemaFinding, SchemaSummary,
    SchemaVersion, SeekReply, Shadow, ShadowReply, StateItem, TopicConfig, TopicInfo, TopicSchemas,
    WhichLetters,
};
pub use prombus_interface::{
    Cursor, DEFAULT_DEDUPE_TTL_MS, Dedupe, DedupeError, DedupeStore, EffectCounts, EventFields,
    Explanation, FieldFilter, GroupCounts, GroupInfo, Id, InvalidPattern, Lag, LaneInfo,
    MemberInfo, Ordering, Pattern, Reason, Schedule, SeekEffect, StartAt, Topic,
};
pub use publish::{
    AlsoPublish, BatchFuture, PublishBatch, PublishExtras, PublishFuture, PublishOptions, Published,
};
pub use reads::{KeyPage, Page};
pub use state::{Follow, LoadState};
pub use subscription::{
    AckPublishFuture, Assignment, Context, Delivery, Ended, Event, SubscribeOptions, Subscription,
    SubscriptionControl,
};
pub use token::{Token, TokenProvider, TokenSource};
