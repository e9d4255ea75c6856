//! What can go wrong: one small struct per fact here, one enum per operation below. Each operation's error has a
//! `code()`, the word that the wire uses for it.

mod effects;
mod facts;
mod operations;
mod state;

pub use effects::{DedupeError, ProjectorError};
pub(crate) use facts::quoted;
pub use facts::{
    AlreadyExists, AlreadySettled, BadCause, BadGroup, BadHeader, BadId, BadJson, BadKey,
    BadOption, BadPattern, BadSid, BadTag, BadTopic, BadTs, BadValue, GroupMismatch, LeaseLost,
    NotPublished, TakenOver, TooLarge, UnknownGroup, UnknownId,
};
pub use operations::{
    AdminError, GroupError, OpenError, PublishError, SettleError, StepError, SubscribeError,
};
pub use prombus_store::{
    CommitError, IdConflict, LimitReached, ReadError, StoreFailed, UnknownTopic,
};
pub use state::{FollowError, HistoryGone, StateError, StateMoved, TooManyKeys, TopicReplaced};
