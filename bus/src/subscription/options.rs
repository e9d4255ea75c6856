//! What a subscriber in process may ask for, beyond what [`prombus_interface::SubscribeOptions`] has for everyone.

use crate::error::InvalidField;
use crate::filter::Filter;
use crate::group::settings::SettingsRequest;
use crate::schemas::UpcastFunction;

/// The longest name of a member.
const MAX_MEMBER_BYTES: usize = 256;

/// The options of a subscription. What belongs to the group is changed with [`crate::Bus::configure_group`].
pub type SubscribeOptions = prombus_interface::SubscribeOptions<Filter, SubscribeExtras>;

/// What only a subscriber in process may ask for.
#[derive(Debug, Clone, Default)]
pub struct SubscribeExtras {
    /// How history and explanations name the subscriber.
    pub member: Option<String>,
    /// Where `upcast` is set: this function may give events another payload.
    pub upcast_with: Option<UpcastFunction>,
}

impl SubscribeExtras {
    /// A name for the subscriber, and nothing else.
    pub fn member(name: impl Into<String>) -> Self {
        Self {
            member: Some(name.into()),
            ..Self::default()
        }
    }
}

pub(super) fn check(options: &SubscribeOptions) -> Result<(), InvalidField> {
    settings(options).check()?;
    options.check()?;
    let member = options.extras.member.as_ref();
    if member.is_some_and(|name| !(1..=MAX_MEMBER_BYTES).contains(&name.len())) {
        return Err(InvalidField::new("member", "must have 1 to 256 bytes"));
    }
    Ok(())
}

/// What a member says for itself where the group's options are settled already.
pub(super) fn own_settings(options: &SubscribeOptions) -> SettingsRequest {
    let function = |filter: &&Filter| matches!(filter, Filter::Function(_));
    SettingsRequest {
        ack_timeout_ms: options.ack_timeout_ms,
        filter: options.filter.as_ref().filter(function).cloned(),
        ..SettingsRequest::default()
    }
}

pub(super) fn settings(options: &SubscribeOptions) -> SettingsRequest {
    SettingsRequest {
        ack_timeout_ms: options.ack_timeout_ms,
        max_attempts: options.max_attempts,
        ordering: options.ordering,
        filter: options.filter.clone(),
        partitioned: options.partitioned,
    }
}
