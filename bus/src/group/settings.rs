//! The properties of a group: what holds for all its members.

use crate::error::InvalidField;
use crate::filter::Filter;
use prombus_interface::{FieldFilter, Ordering};
use serde::{Deserialize, Serialize};

/// The longest lease that can be asked for.
pub(crate) const MAX_ACK_TIMEOUT_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// What belongs to the group. The subscription that makes it decides, and afterwards only who changes it on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupSettings {
    pub(crate) ack_timeout_ms: u64,
    pub(crate) max_attempts: u32,
    pub(crate) ordering: Ordering,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) filter: Option<FieldFilter>,
    /// Each partition of the topic goes to one member at a time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) partitioned: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Changes to what belongs to a group; `None` leaves it as it is.
#[derive(Debug, Clone, Default)]
pub struct GroupConfig {
    /// After how many failed deliveries an event is dead.
    pub max_attempts: Option<u32>,
    /// In which order events come.
    pub ordering: Option<Ordering>,
    /// Which events the group wants. A function cannot be stored, and is refused.
    pub filter: Option<Filter>,
}

impl GroupConfig {
    pub(crate) fn request(&self) -> Result<SettingsRequest, InvalidField> {
        if let Some(Filter::Function(_)) = self.filter {
            return Err(InvalidField::new(
                "filter",
                "a function cannot be stored with the group",
            ));
        }
        let request = SettingsRequest {
            ack_timeout_ms: None,
            max_attempts: self.max_attempts,
            ordering: self.ordering,
            filter: self.filter.clone(),
            partitioned: None,
        };
        request.check()?;
        Ok(request)
    }
}

/// What one subscription says about the group, where it says anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingsRequest {
    pub(crate) ack_timeout_ms: Option<u64>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) ordering: Option<Ordering>,
    pub(crate) filter: Option<Filter>,
    pub(crate) partitioned: Option<bool>,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            ack_timeout_ms: 30_000,
            max_attempts: 5,
            ordering: Ordering::None,
            filter: None,
            partitioned: false,
        }
    }
}

impl GroupSettings {
    /// Takes over what was asked for, and says whether anything changed.
    pub(crate) fn apply(&mut self, request: &SettingsRequest) -> bool {
        let before = self.clone();
        if let Some(ack_timeout_ms) = request.ack_timeout_ms {
            self.ack_timeout_ms = ack_timeout_ms;
        }
        if let Some(max_attempts) = request.max_attempts {
            self.max_attempts = max_attempts;
        }
        if let Some(ordering) = request.ordering {
            self.ordering = ordering;
        }
        if let Some(filter) = &request.filter {
            self.filter = stored_filter(filter);
        }
        if let Some(partitioned) = request.partitioned {
            self.partitioned = partitioned;
        }
        *self != before
    }
}

impl GroupSettings {
    /// The first option of a request that differs from the group's. How long leases are is each member's own.
    pub(crate) fn mismatch(&self, request: &SettingsRequest) -> Option<&'static str> {
        if request
            .max_attempts
            .is_some_and(|wanted| wanted != self.max_attempts)
        {
            return Some("max_attempts");
        }
        if request
            .ordering
            .is_some_and(|wanted| wanted != self.ordering)
        {
            return Some("ordering");
        }
        if request
            .partitioned
            .is_some_and(|wanted| wanted != self.partitioned)
        {
            return Some("partitioned");
        }
        let wanted = request.filter.as_ref().map(stored_filter);
        let is_other = wanted.is_some_and(|wanted| wanted != self.filter);
        is_other.then_some("filter")
    }
}

/// What is stored of a filter: nothing of a function, which cannot be compared either, nor of one that wants all.
fn stored_filter(filter: &Filter) -> Option<FieldFilter> {
    match filter {
        Filter::Fields(fields) if *fields != FieldFilter::default() => Some(fields.clone()),
        Filter::Fields(_) | Filter::All | Filter::Function(_) => None,
    }
}

impl SettingsRequest {
    pub(crate) fn check(&self) -> Result<(), InvalidField> {
        if self
            .ack_timeout_ms
            .is_some_and(|ms| !(1..=MAX_ACK_TIMEOUT_MS).contains(&ms))
        {
            let reason = "must be 1 to 604800000, a week";
            return Err(InvalidField::new("ack_timeout_ms", reason));
        }
        if self.max_attempts == Some(0) {
            return Err(InvalidField::new("max_attempts", "must be at least 1"));
        }
        Ok(())
    }
}
