//! What can go wrong: one small struct per fact, one enum per operation, each with `is_retryable`. Wire codes and HTTP
//! statuses are assigned where the wire is spoken, not here.

mod effects;
mod facts;
mod operations;
mod schedule;
mod schema;
mod state;

pub use effects::ProjectorError;
pub use facts::{
    AlreadySettled, GroupMismatch, InvalidField, InvalidGroup, InvalidJson, InvalidPattern,
    InvalidPayload, InvalidTopic, LeaseLost, NotPublished, NothingToUndo, OwnedElsewhere,
    SchemaInvalid, TakenOver, TooLarge, TooMuchSettled, TopicExists, UnknownGroup, UnknownId,
    UnknownSchedule, UnknownSchema,
};
pub use operations::{
    AckPublishError, AdminError, GroupError, OpenError, OpenUrlError, PublishError, SettleError,
    SubscribeError,
};
pub use prombus_interface::DedupeError;
pub use prombus_schema::{Incompatible, InvalidSchema};
pub use prombus_store::{
    CommitError, IdConflict, LimitReached, PositionMismatch, PositionOf, ReadError, SeqMismatch,
    StoreFailed, UnknownTopic,
};
pub use schedule::ScheduleError;
pub use schema::SchemaError;
pub use state::{FollowError, HistoryGone, StateError, StateMoved, TooManyKeys, TopicReplaced};
