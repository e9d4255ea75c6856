//! Errors as they go over the wire. Every error of the bus and of the gateway becomes one, the same for WebSocket and
//! HTTP; the tables from error to code are in `codes`.

mod codes;

use crate::auth::AuthError;
use crate::limits::RateLimited;
use prombus::ReadError;
use prombus::error::{
    AckPublishError, AdminError, GroupError, GroupMismatch, InvalidField, InvalidGroup,
    InvalidPattern, InvalidTopic, PublishError, ScheduleError, SchemaError, SettleError,
    StateError, SubscribeError,
};
use prombus_api::frames::ErrorDetails;
use prombus_api::{Code, FrameError, ParseError};

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// When a retry may succeed, and what was found where something else was expected, where that is known.
    pub(crate) details: ErrorDetails,
}

impl ApiError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: ErrorDetails::default(),
        }
    }
}

/// Errors with a table in `codes`.
macro_rules! from_errors {
    ($($error:ty => $code:path),+ $(,)?) => {$(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::new($code(&error), error.to_string())
            }
        }
    )+};
}

from_errors! {
    AdminError => codes::admin,
    SchemaError => codes::schema,
    SettleError => codes::settle,
    StateError => codes::state,
    ReadError => codes::read,
    AuthError => codes::auth,
    ScheduleError => codes::schedule,
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        Self {
            details: details_of(&error),
            ..Self::new(codes::publish(&error), error.to_string())
        }
    }
}

impl From<AckPublishError> for ApiError {
    fn from(error: AckPublishError) -> Self {
        let details = match &error {
            AckPublishError::NotPublished(rejected) => details_of(&rejected.error),
            _ => ErrorDetails::default(),
        };
        Self {
            details,
            ..Self::new(codes::ack_publish(&error), error.to_string())
        }
    }
}

fn details_of(error: &PublishError) -> ErrorDetails {
    let actual = match error {
        PublishError::SeqMismatch(error) => Some(error.mismatch.actual),
        _ => None,
    };
    ErrorDetails {
        actual,
        ..ErrorDetails::default()
    }
}

impl From<SubscribeError> for ApiError {
    fn from(error: SubscribeError) -> Self {
        let code = codes::subscribe(&error);
        match error {
            SubscribeError::InvalidField(invalid) => Self::new(code, in_wire_names(invalid)),
            SubscribeError::Group(error) => error.into(),
            error => Self::new(code, error.to_string()),
        }
    }
}

impl From<GroupError> for ApiError {
    fn from(error: GroupError) -> Self {
        let code = codes::group(&error);
        match error {
            GroupError::InvalidField(invalid) => Self::new(code, in_wire_names(invalid)),
            GroupError::GroupMismatch(mismatch) => {
                let field = wire_name(mismatch.field);
                Self::new(code, GroupMismatch { field, ..mismatch }.to_string())
            }
            error => Self::new(code, error.to_string()),
        }
    }
}

fn in_wire_names(error: InvalidField) -> String {
    let field = wire_name(error.field);
    InvalidField { field, ..error }.to_string()
}

/// A subscribe option as the wire names it. All other options have one name everywhere.
fn wire_name(field: &'static str) -> &'static str {
    match field {
        "ack_timeout_ms" => "ackTimeoutMs",
        "after_id" => "afterId",
        "batch_size" => "batchSize",
        "manual_ack" => "manualAck",
        "max_attempts" => "maxAttempts",
        "max_in_flight" => "maxInFlight",
        same => same,
    }
}

impl From<InvalidTopic> for ApiError {
    fn from(error: InvalidTopic) -> Self {
        Self::new(Code::BadTopic, error.to_string())
    }
}

impl From<InvalidPattern> for ApiError {
    fn from(error: InvalidPattern) -> Self {
        Self::new(Code::BadTopic, error.to_string())
    }
}

impl From<InvalidGroup> for ApiError {
    fn from(error: InvalidGroup) -> Self {
        Self::new(Code::BadGroup, error.to_string())
    }
}

impl From<ParseError> for ApiError {
    fn from(error: ParseError) -> Self {
        Self::new(error.code, error.message)
    }
}

impl From<FrameError> for ApiError {
    fn from(error: FrameError) -> Self {
        Self::new(error.code, error.message)
    }
}

impl From<RateLimited> for ApiError {
    fn from(limited: RateLimited) -> Self {
        Self {
            details: ErrorDetails {
                retry_after_ms: Some(limited.retry.ms),
                ..ErrorDetails::default()
            },
            ..Self::new(Code::RateLimited, limited.to_string())
        }
    }
}
