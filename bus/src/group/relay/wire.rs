//! The messages of a link: a JSON head, and behind it a batch of events where a message has one.

use super::errors::{WireAckPublishError, WireGroupError, WireSettleError};
use crate::filter::Filter;
use crate::group::command::{PatternDefaults, Seek};
use crate::group::settings::SettingsRequest;
use crate::group::state::{MemberId, Settled};
use crate::publish::Published;
use prombus_interface::{
    Explanation, FieldFilter, GroupInfo, Ordering, SeekEffect, SettleOp, StartAt,
};
use prombus_store::Id;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A lease by member, position and number. Members are numbered by the relay.
pub(crate) type Lease = (MemberId, u64, u64);

/// What a relay tells the owner's node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum FromRelay {
    /// The first message: for which group, and who relays.
    Hello {
        topic: Arc<str>,
        group: Arc<str>,
        node: u64,
        boot: u64,
        /// What people know the node by.
        name: String,
    },
    /// A member joins, or is there since before.
    Join {
        request: u64,
        member: MemberId,
        join: Box<WireJoin>,
    },
    /// All members that are there since before have joined.
    Reported,
    Leave {
        member: MemberId,
    },
    /// How many events a member may have in flight now, and whether it takes any.
    Credit {
        member: MemberId,
        limit: usize,
        is_open: bool,
    },
    Acks {
        request: u64,
        leases: Vec<Lease>,
    },
    Settle {
        request: u64,
        lease: Lease,
        what: SettleOp,
    },
    Release {
        member: MemberId,
        leases: Vec<(u64, u64)>,
    },
    SetAckTimeout {
        member: MemberId,
        ack_timeout_ms: Option<u64>,
    },
    ConfirmRevoked {
        member: MemberId,
        partitions: Vec<u32>,
    },
    /// With the events to publish behind it.
    AckPublish {
        request: u64,
        leases: Vec<Lease>,
    },
    /// The same by ids.
    AckPublishByIds {
        request: u64,
        member: MemberId,
        ids: Vec<String>,
    },
    SettleByIds {
        request: u64,
        member: MemberId,
        ids: Vec<String>,
        what: SettleOp,
    },
    Command {
        request: u64,
        command: WireCommand,
    },
    /// No member is left: nothing is held any more.
    Goodbye,
}

/// What the owner's node tells a relay.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum FromOwner {
    /// By the monotonic clock of the owner's node, which says how long messages take.
    Beat {
        at_ms: u64,
    },
    Joined {
        request: u64,
        result: Result<(), WireGroupError>,
    },
    Grants {
        member: MemberId,
        /// As of a beat.
        at_ms: u64,
        leases: Vec<Grant>,
    },
    Assignment {
        member: MemberId,
        revoked: Vec<u32>,
        assigned: Vec<u32>,
    },
    Acked {
        request: u64,
    },
    Settled {
        request: u64,
        result: Result<Settled, WireSettleError>,
    },
    SettledByIds {
        request: u64,
        results: Vec<Result<(), WireSettleError>>,
    },
    AckPublished {
        request: u64,
        result: Result<Vec<WirePublished>, WireAckPublishError>,
    },
    Replied {
        request: u64,
        result: Result<WireReply, WireGroupError>,
    },
    /// The owner is gone, for this reason.
    Ended {
        reason: WireEnded,
    },
}

/// An event that is leased to a member.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) seq: u64,
    pub(crate) number: u64,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    /// What is left of the lease when this is sent.
    pub(crate) left_ms: u64,
    pub(crate) timeout_ms: u64,
}

/// A lease that a member holds since before.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WireHeld {
    pub(crate) seq: u64,
    pub(crate) number: u64,
    pub(crate) attempt: u32,
    pub(crate) left_ms: u64,
}

/// A member that joins.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireJoin {
    pub(crate) name: Arc<str>,
    pub(crate) batch_size: usize,
    pub(crate) limit: usize,
    pub(crate) is_open: bool,
    pub(crate) start_at: StartAt,
    pub(crate) settings: WireSettings,
    pub(crate) held: Vec<WireHeld>,
    /// Where it joins through a pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pattern: Option<PatternDefaults>,
}

/// What a member says about the group.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WireSettings {
    ack_timeout_ms: Option<u64>,
    max_attempts: Option<u32>,
    ordering: Option<Ordering>,
    /// `Some(None)` asks for all events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<WireFilter>,
    partitioned: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireFilter {
    All,
    Fields(FieldFilter),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireEnded {
    BusClosed,
    TopicDeleted,
    GroupRemoved,
    TakenOver,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WirePublished {
    id: String,
    seq: u64,
    ts: u64,
    duplicate: bool,
}

/// What is asked of the group as a whole.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireCommand {
    Describe,
    Explain,
    Seek { place: StartAt, dry_run: bool },
    UndoSeek,
    SetPaused(bool),
    Configure(WireSettings),
    Remove,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireReply {
    Info(Box<GroupInfo>),
    Explanation(Box<Explanation>),
    Effect(SeekEffect),
    Done,
}

/// A message with what is behind its head.
pub(crate) fn encode<T: Serialize>(head: &T, body: &[u8]) -> Vec<u8> {
    // Strings and numbers are always written.
    let head = serde_json::to_vec(head).unwrap_or_default();
    let mut message = Vec::with_capacity(4 + head.len() + body.len());
    message.extend_from_slice(&(head.len() as u32).to_le_bytes());
    message.extend_from_slice(&head);
    message.extend_from_slice(body);
    message
}

/// The head of a message and what is behind it; `None` where it cannot be understood.
pub(crate) fn decode<T: for<'a> Deserialize<'a>>(message: &[u8]) -> Option<(T, &[u8])> {
    let (length, rest) = message.split_first_chunk::<4>()?;
    let (head, body) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((serde_json::from_slice(head).ok()?, body))
}

impl WireSettings {
    /// `None` where the filter is a function, which stays in its process.
    pub(crate) fn of(request: &SettingsRequest) -> Option<Self> {
        let filter = match &request.filter {
            None => None,
            Some(Filter::All) => Some(WireFilter::All),
            Some(Filter::Fields(fields)) => Some(WireFilter::Fields(fields.clone())),
            Some(Filter::Function(_)) => return None,
        };
        Some(Self {
            ack_timeout_ms: request.ack_timeout_ms,
            max_attempts: request.max_attempts,
            ordering: request.ordering,
            filter,
            partitioned: request.partitioned,
        })
    }

    /// Only how long leases are, which is each member's own.
    pub(crate) fn with_ack_timeout(ack_timeout_ms: Option<u64>) -> Self {
        Self {
            ack_timeout_ms,
            ..Self::default()
        }
    }

    pub(crate) fn into_request(self) -> SettingsRequest {
        SettingsRequest {
            ack_timeout_ms: self.ack_timeout_ms,
            max_attempts: self.max_attempts,
            ordering: self.ordering,
            filter: self.filter.map(|filter| match filter {
                WireFilter::All => Filter::All,
                WireFilter::Fields(fields) => Filter::Fields(fields),
            }),
            partitioned: self.partitioned,
        }
    }
}

impl WirePublished {
    pub(crate) fn of(published: &Published) -> Self {
        Self {
            id: published.id.to_string(),
            seq: published.seq,
            ts: published.ts,
            duplicate: published.duplicate,
        }
    }

    pub(crate) fn into_published(self) -> Option<Published> {
        Some(Published {
            id: Id::from_client(&self.id)?,
            seq: self.seq,
            ts: self.ts,
            duplicate: self.duplicate,
        })
    }
}

impl WireEnded {
    pub(crate) fn of(ended: crate::group::Ended) -> Self {
        use crate::group::Ended;
        match ended {
            Ended::TopicDeleted => Self::TopicDeleted,
            Ended::GroupRemoved => Self::GroupRemoved,
            Ended::TakenOver => Self::TakenOver,
            Ended::BusClosed | Ended::Unsubscribed => Self::BusClosed,
        }
    }
}

impl WireCommand {
    pub(crate) fn of_seek(seek: &Seek) -> Self {
        Self::Seek {
            place: seek.place.clone(),
            dry_run: seek.dry_run,
        }
    }
}
