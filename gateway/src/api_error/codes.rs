//! From error to wire code: one exhaustive match for each operation. The HTTP status follows from the code
//! ([`Code::http_status`]).

use crate::auth::AuthError;
use prombus::ReadError;
use prombus::error::{
    AckPublishError, AdminError, GroupError, PublishError, ScheduleError, SchemaError, SettleError,
    StateError, SubscribeError,
};
use prombus_api::Code;

pub(super) fn publish(error: &PublishError) -> Code {
    match error {
        PublishError::InvalidTopic(_) => Code::BadTopic,
        PublishError::InvalidJson(_) | PublishError::InvalidPayload(_) => Code::BadJson,
        PublishError::TooLarge(_) => Code::TooLarge,
        PublishError::InvalidField(_) => Code::BadFrame,
        PublishError::SchemaInvalid(_) => Code::SchemaInvalid,
        PublishError::UnknownTopic(_) => Code::UnknownTopic,
        PublishError::IdConflict(_) => Code::IdConflict,
        PublishError::SeqMismatch(_) => Code::SeqMismatch,
        PublishError::LimitReached(_) | PublishError::StoreFailed(_) => Code::PublishFailed,
        PublishError::Closed => Code::ShuttingDown,
    }
}

pub(super) fn subscribe(error: &SubscribeError) -> Code {
    match error {
        SubscribeError::InvalidTopic(_) | SubscribeError::InvalidPattern(_) => Code::BadTopic,
        SubscribeError::InvalidGroup(_) => Code::BadGroup,
        SubscribeError::InvalidField(_) => Code::BadFrame,
        SubscribeError::UnknownTopic(_) => Code::UnknownTopic,
        SubscribeError::Group(error) => group(error),
    }
}

pub(super) fn group(error: &GroupError) -> Code {
    match error {
        GroupError::InvalidTopic(_) => Code::BadTopic,
        GroupError::InvalidGroup(_) => Code::BadGroup,
        GroupError::InvalidField(_) => Code::BadFrame,
        GroupError::UnknownTopic(_) => Code::UnknownTopic,
        GroupError::UnknownGroup(_) => Code::UnknownGroup,
        GroupError::UnknownId(_) => Code::UnknownId,
        GroupError::TakenOver(_) => Code::LeaseLost,
        GroupError::GroupMismatch(_)
        | GroupError::NothingToUndo(_)
        | GroupError::TooMuchSettled(_) => Code::GroupMismatch,
        GroupError::Damaged { .. } | GroupError::ReadFailed { .. } => Code::ReadFailed,
        GroupError::StoreFailed(_) | GroupError::OwnedElsewhere(_) => Code::AckFailed,
        GroupError::Closed => Code::ShuttingDown,
    }
}

pub(super) fn admin(error: &AdminError) -> Code {
    match error {
        AdminError::InvalidTopic(_) => Code::BadTopic,
        AdminError::InvalidField(_) | AdminError::TopicExists(_) => Code::BadFrame,
        AdminError::UnknownTopic(_) => Code::UnknownTopic,
        AdminError::LimitReached(_) | AdminError::StoreFailed(_) => Code::PublishFailed,
        AdminError::ReadFailed { .. } => Code::ReadFailed,
        AdminError::Closed => Code::ShuttingDown,
    }
}

pub(super) fn schema(error: &SchemaError) -> Code {
    match error {
        SchemaError::InvalidTopic(_) => Code::BadTopic,
        SchemaError::InvalidSchema(_) => Code::BadSchema,
        SchemaError::InvalidField(_) => Code::BadFrame,
        SchemaError::Incompatible(_) => Code::SchemaIncompatible,
        SchemaError::UnknownTopic(_) => Code::UnknownTopic,
        SchemaError::UnknownSchema(_) => Code::UnknownSchema,
        SchemaError::LimitReached(_) => Code::TooLarge,
        SchemaError::Contended { .. } | SchemaError::StoreFailed(_) => Code::PublishFailed,
        SchemaError::ReadFailed { .. } => Code::ReadFailed,
        SchemaError::Closed => Code::ShuttingDown,
    }
}

pub(super) fn settle(error: &SettleError) -> Code {
    match error {
        SettleError::LeaseLost(_) => Code::LeaseLost,
        SettleError::UnknownId(_) => Code::UnknownId,
        SettleError::NotWritten { .. } | SettleError::Gone => Code::AckFailed,
    }
}

pub(super) fn ack_publish(error: &AckPublishError) -> Code {
    match error {
        AckPublishError::NotPublished(rejected) => publish(&rejected.error),
        AckPublishError::AlreadySettled(_)
        | AckPublishError::LeaseLost(_)
        | AckPublishError::TakenOver(_) => Code::LeaseLost,
        AckPublishError::UnknownId(_) => Code::UnknownId,
        AckPublishError::NotOneGroup => Code::BadFrame,
        AckPublishError::StoreFailed(_) | AckPublishError::LimitReached(_) => Code::PublishFailed,
        AckPublishError::Closed => Code::ShuttingDown,
        AckPublishError::Gone => Code::AckFailed,
    }
}

pub(super) fn state(error: &StateError) -> Code {
    match error {
        StateError::InvalidTopic(_) => Code::BadTopic,
        StateError::InvalidField(_) => Code::BadFrame,
        StateError::UnknownTopic(_) => Code::UnknownTopic,
        StateError::TooManyKeys(_) => Code::TooLarge,
        StateError::HistoryGone(_) => Code::HistoryGone,
        StateError::StateMoved(_) | StateError::ReadFailed { .. } | StateError::StoreFailed(_) => {
            Code::ReadFailed
        }
    }
}

pub(super) fn schedule(error: &ScheduleError) -> Code {
    match error {
        ScheduleError::UnknownSchedule(_) => Code::UnknownId,
        ScheduleError::ReadFailed { .. } => Code::ReadFailed,
        ScheduleError::Busy { .. } | ScheduleError::StoreFailed(_) => Code::PublishFailed,
        ScheduleError::Closed => Code::ShuttingDown,
    }
}

pub(super) fn read(error: &ReadError) -> Code {
    match error {
        ReadError::UnknownTopic(_) => Code::UnknownTopic,
        ReadError::Failed { .. } => Code::ReadFailed,
    }
}

pub(super) fn auth(error: &AuthError) -> Code {
    match error {
        AuthError::Missing | AuthError::KeysUnavailable(_) => Code::Unauthorized,
        AuthError::Expired { .. } => Code::TokenExpired,
        AuthError::WrongToken
        | AuthError::Malformed { .. }
        | AuthError::WrongAlgorithm { .. }
        | AuthError::UnknownKey { .. }
        | AuthError::WrongSignature
        | AuthError::NoExpiry
        | AuthError::NotYetValid { .. }
        | AuthError::WrongIssuer
        | AuthError::WrongAudience
        | AuthError::BadPolicy(_) => Code::BadToken,
    }
}
