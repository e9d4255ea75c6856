//! The commands that the bus sends to the owner of a group, each with its reply channel.

use super::inbox::AckPublishReply;
use super::membership::Membership;
use super::ownership::Via;
use super::settings::{GroupSettings, SettingsRequest};
use super::state::{HeldLease, MemberId};
use super::subscriber::{Ended, Subscriber};
use crate::error::{AckPublishError, GroupError, SettleError};
use crate::publish::AtomicBatch;
use prombus_interface::{Explanation, GroupInfo, SeekEffect, SettleOp, StartAt};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request to the owner.
pub(crate) enum Command {
    /// Adds a member, and creates the group where there is none.
    Join(Box<Join>, Reply<Membership>),
    /// Settles or extends events by their ids.
    Settle(SettleByIds, oneshot::Sender<Vec<Result<(), SettleError>>>),
    /// Transactions of a member, each of which acknowledges events by their ids and publishes others.
    AckPublish(Asker, Vec<(AckPublishByIds, AckPublishReply)>),
    /// Describes the group.
    Describe(Reply<GroupInfo>),
    /// Explains why nothing is delivered.
    Explain(Reply<Explanation>),
    /// Sets the cursor, or reports what that would do.
    Seek(Seek, Reply<SeekEffect>),
    /// Undoes the last seek.
    UndoSeek(Reply<SeekEffect>),
    /// Pauses the group, or lets it go on.
    SetPaused(bool, Reply<GroupInfo>),
    /// Changes the settings of the group.
    Configure(SettingsRequest, Reply<()>),
    /// Removes the group's record, for this reason.
    Remove(Ended, Reply<()>),
    /// Stops without touching the record: the caller removes it.
    Abandon(Ended, Reply<()>),
    /// The members behind a node have joined, each with the leases that it holds.
    Reported(Via),
}

impl Command {
    /// Replies with an error.
    pub(crate) fn fail(self, error: &GroupError) {
        // The caller may have gone away.
        match self {
            Self::Join(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Settle(settle, reply) => {
                let refused = settle.ids.iter().map(|_| Err(SettleError::Gone)).collect();
                drop(reply.send(refused));
            }
            Self::AckPublish(_, ack_publishes) => {
                for (_, reply) in ack_publishes {
                    drop(reply.send(Err(AckPublishError::Gone)));
                }
            }
            Self::Describe(reply) | Self::SetPaused(_, reply) => {
                drop(reply.send(Err(error.clone())))
            }
            Self::Explain(reply) => drop(reply.send(Err(error.clone()))),
            Self::Seek(_, reply) | Self::UndoSeek(reply) => drop(reply.send(Err(error.clone()))),
            Self::Reported(_) => {}
            Self::Configure(_, reply) | Self::Remove(_, reply) | Self::Abandon(_, reply) => {
                drop(reply.send(Err(error.clone())));
            }
        }
    }
}

/// The reply channel of a command.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, GroupError>>;

/// A subscription that joins the group.
pub(crate) struct Join {
    pub(crate) member: MemberId,
    pub(crate) subscriber: Arc<Subscriber>,
    /// Where the group begins if it is made now.
    pub(crate) start_at: StartAt,
    pub(crate) settings: SettingsRequest,
    /// The settings of the pattern's group, where the topic is joined through a pattern.
    pub(crate) pattern: Option<PatternDefaults>,
    /// The node that it is on and what people know that by, where it is not this one.
    pub(crate) via: Option<(Via, Arc<str>)>,
    /// What it holds since before, of an earlier owner or by a link that broke.
    pub(crate) held: Vec<HeldLease>,
    /// The member whose place it takes, with what that holds.
    pub(crate) replaces: Option<MemberId>,
}

/// What the group of a pattern gives to the group of each of its topics.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PatternDefaults {
    /// What a group that is made now has where the request says nothing.
    pub(crate) settings: GroupSettings,
    /// The incarnation of the topic that the place to begin at is in.
    pub(crate) incarnation: u64,
}

/// The sender of a request by ids.
pub(crate) enum Asker {
    Member(MemberId),
    /// One that follows a pattern, and may be a member by the time the owner gets to it.
    Follower(Arc<Subscriber>),
}

/// Events to settle or extend by their ids.
pub(crate) struct SettleByIds {
    pub(crate) asker: Asker,
    pub(crate) ids: Vec<String>,
    pub(crate) op: SettleOp,
}

/// Events to acknowledge by their ids, and what is published in the same transaction.
pub(crate) struct AckPublishByIds {
    pub(crate) ids: Vec<String>,
    pub(crate) events: AtomicBatch,
}

/// Where to set the cursor.
pub(crate) struct Seek {
    pub(crate) place: StartAt,
    pub(crate) dry_run: bool,
}
