//! Why somebody did not get what they asked for, in the words of the wire. Every error of the bus and of this room
//! becomes one, so that sockets and HTTP say the same.

use crate::auth::AuthError;
use crate::limits::RateLimited;
use prombus::ReadError;
use prombus::error::{
    AdminError, GroupError, PublishError, SettleError, StateError, StepError, SubscribeError,
};
use prombus_api::{Code, Refusal};

/// A refusal on its way to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// When the same may succeed, where that is known.
    pub(crate) retry_after_ms: Option<u64>,
}

impl Denied {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after_ms: None,
        }
    }

    /// An error of the bus goes by the bus's own word for it. A word that is not known here would be a mistake of
    /// ours, and `or_else` says what the client hears then.
    fn of_bus(word: &str, message: &dyn std::fmt::Display, or_else: Code) -> Self {
        Self::new(Code::parse(word).unwrap_or(or_else), message.to_string())
    }
}

impl From<PublishError> for Denied {
    fn from(error: PublishError) -> Self {
        Self::of_bus(error.code(), &error, Code::PublishFailed)
    }
}

impl From<SubscribeError> for Denied {
    fn from(error: SubscribeError) -> Self {
        match error {
            SubscribeError::Group(error) => error.into(),
            error => Self::of_bus(error.code(), &error, Code::BadFrame),
        }
    }
}

impl From<GroupError> for Denied {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::UnknownGroup(_) => Self::new(Code::UnknownGroup, error.to_string()),
            GroupError::ReadFailed { .. } | GroupError::Damaged { .. } => {
                Self::new(Code::ReadFailed, error.to_string())
            }
            error => Self::of_bus(error.code(), &error, Code::AckFailed),
        }
    }
}

impl From<AdminError> for Denied {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::ReadFailed { .. } => Self::new(Code::ReadFailed, error.to_string()),
            error => Self::of_bus(error.code(), &error, Code::PublishFailed),
        }
    }
}

impl From<SettleError> for Denied {
    fn from(error: SettleError) -> Self {
        Self::of_bus(error.code(), &error, Code::AckFailed)
    }
}

impl From<StepError> for Denied {
    fn from(error: StepError) -> Self {
        Self::of_bus(error.code(), &error, Code::AckFailed)
    }
}

impl From<ReadError> for Denied {
    fn from(error: ReadError) -> Self {
        let code = match error {
            ReadError::UnknownTopic(_) => Code::UnknownTopic,
            ReadError::Failed { .. } => Code::ReadFailed,
        };
        Self::new(code, error.to_string())
    }
}

impl From<StateError> for Denied {
    fn from(error: StateError) -> Self {
        Self::of_bus(error.code(), &error, Code::ReadFailed)
    }
}

impl From<AuthError> for Denied {
    fn from(error: AuthError) -> Self {
        Self::of_bus(error.code(), &error, Code::Unauthorized)
    }
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, refusal.message)
    }
}

impl From<RateLimited> for Denied {
    fn from(limited: RateLimited) -> Self {
        Self {
            retry_after_ms: Some(limited.retry.ms),
            ..Self::new(Code::RateLimited, limited.to_string())
        }
    }
}
