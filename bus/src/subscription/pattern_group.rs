//! Where the group of a pattern begins in each topic. It is decided once, when the group is made, and stored: topics that
//! existed then begin where `from` said, and topics that begin to match later, also while no member is connected, begin
//! with their first event.

use crate::core::Core;
use crate::error::{GroupError, GroupMismatch, StoreFailed};
use crate::group::settings::{GroupSettings, SettingsRequest};
use prombus_interface::names::is_internal_topic;
use prombus_interface::{Pattern, StartAt};
use prombus_store::{Batch, Change, CommitError, Expect};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The form this code writes. A record of a later form is refused rather than misread.
const RECORD_VERSION: u32 = 1;
/// How often the record is looked for while others make and remove it.
const MAX_TRIES: usize = 16;

/// Where a pattern's group begins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct PatternGroup {
    version: u32,
    created_ms: u64,
    /// What belongs to the group: its topics are made with it, whichever member comes first.
    #[serde(default)]
    settings: GroupSettings,
    /// The time that topics of `placed` without a position begin at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ts: Option<u64>,
    /// The topics that existed and do not begin with their first event, by incarnation, with their first cursor.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    placed: BTreeMap<u64, Option<u64>>,
}

/// The key of a pattern group's record.
pub(crate) fn pattern_key(pattern: &Pattern, group: &str) -> Arc<str> {
    format!("pattern/{group}/{pattern}").into()
}

impl PatternGroup {
    /// Where a group that is made now begins in the topics there are.
    pub(super) fn new(
        pattern: &Pattern,
        from: &StartAt,
        request: &SettingsRequest,
        core: &Core,
    ) -> Self {
        let mut settings = GroupSettings::default();
        settings.apply(request);
        let mut start = Self {
            version: RECORD_VERSION,
            created_ms: core.now_ms(),
            settings,
            ..Self::default()
        };
        let mut topics = core.store.topics();
        topics.retain(|info| !is_internal_topic(&info.name) && pattern.matches(&info.name));
        for info in &topics {
            let cursor = match from {
                StartAt::Earliest => continue,
                StartAt::Latest => Some(info.tail_seq),
                StartAt::Seq(seq) => Some(seq - 1),
                StartAt::Ts(ts) => {
                    start.ts = Some(*ts);
                    None
                }
                // Rejected before: an id names an event of one topic.
                StartAt::AfterId(_) => continue,
            };
            if cursor != Some(0) {
                start.placed.insert(info.incarnation, cursor);
            }
        }
        start
    }

    /// The stored one, which is made where there is none.
    pub(super) async fn stored(
        core: &Core,
        pattern: &Pattern,
        group: &str,
        from: &StartAt,
        request: &SettingsRequest,
    ) -> Result<Self, GroupError> {
        let key = pattern_key(pattern, group);
        for _ in 0..MAX_TRIES {
            if let Some(stored) = core.store.get(&key).await? {
                let start =
                    Self::from_bytes(&stored.value).map_err(|reason| GroupError::Damaged {
                        topic: pattern.to_string().into(),
                        group: group.into(),
                        reason: reason.into(),
                    })?;
                return match start.settings.mismatch(request) {
                    None => Ok(start),
                    Some(field) => Err(GroupMismatch {
                        topic: pattern.to_string().into(),
                        group: group.into(),
                        field,
                    }
                    .into()),
                };
            }
            let start = Self::new(pattern, from, request, core);
            let mut batch = Batch::new();
            batch.change(Change::Put {
                key: key.clone(),
                // Numbers are always written.
                value: serde_json::to_vec(&start).unwrap_or_default().into(),
                expect: Expect::Absent,
            });
            match core.store.commit(batch).await {
                Ok(_) => return Ok(start),
                Err(CommitError::VersionMismatch(_)) => {}
                Err(CommitError::Closed) => return Err(GroupError::Closed),
                Err(CommitError::StoreFailed(error)) => return Err(error.into()),
                Err(error) => {
                    let cause = error.to_string().into();
                    return Err(StoreFailed { cause }.into());
                }
            }
        }
        let cause = "the pattern group is created and removed concurrently".into();
        Err(StoreFailed { cause }.into())
    }

    /// What belongs to the group.
    pub(super) fn settings(&self) -> &GroupSettings {
        &self.settings
    }

    /// Where the group begins in one incarnation of a topic.
    pub(super) fn of(&self, incarnation: u64) -> StartAt {
        match self.placed.get(&incarnation) {
            Some(Some(cursor)) => StartAt::Seq(cursor + 1),
            Some(None) => self.ts.map_or(StartAt::Seq(1), StartAt::Ts),
            None => StartAt::Seq(1),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let start: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if start.version > RECORD_VERSION {
            return Err(format!(
                "format {} is newer than {RECORD_VERSION}",
                start.version
            ));
        }
        Ok(start)
    }
}
