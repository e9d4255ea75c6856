//! What the bus asks the owner of a group to do, each with a place for the answer.

use super::explain::Explanation;
use super::inbox::{Refusal, StepReply};
use super::info::{GroupInfo, SeekEffect};
use super::placing::StartAt;
use super::seat::Seat;
use super::settings::{GroupSettings, SettingsRequest};
use super::state::MemberId;
use super::subscriber::{Ended, Subscriber};
use crate::error::{GroupError, SettleError, StepError};
use crate::publish::WholeBatch;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request to the owner.
pub(crate) enum Command {
    /// Lets a subscription in, and makes the group where there is none.
    Join(Box<Join>, Reply<Seat>),
    /// Settles or extends events by their ids.
    Settle(SettleByIds, oneshot::Sender<Vec<Result<(), SettleError>>>),
    /// Steps of a member, each of which acknowledges events by their ids and publishes others.
    Steps(MemberId, Vec<(StepByIds, StepReply)>),
    /// What can be told about the group.
    Describe(Reply<GroupInfo>),
    /// Why nothing is flowing.
    Explain(Reply<Explanation>),
    /// Sets the cursor, or only says what that would do.
    Seek(Seek, Reply<SeekEffect>),
    /// Changes what belongs to the group.
    Configure(SettingsRequest, Reply<()>),
    /// Removes what is stored of the group, for this reason.
    Remove(Ended, Reply<()>),
    /// Stops serving without touching what is stored: whoever asks removes it.
    Abandon(Ended, Reply<()>),
}

impl Command {
    /// Answers with an error.
    pub(crate) fn refuse(self, error: &GroupError) {
        // Whoever asked may have gone away, and then nobody needs the answer.
        match self {
            Self::Join(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Settle(what, reply) => {
                let refused = what.ids.iter().map(|_| Err(SettleError::Gone)).collect();
                drop(reply.send(refused));
            }
            Self::Steps(_, steps) => {
                for (_, reply) in steps {
                    drop(reply.send(Err(StepError::Gone)));
                }
            }
            Self::Describe(reply) => drop(reply.send(Err(error.clone()))),
            Self::Explain(reply) => drop(reply.send(Err(error.clone()))),
            Self::Seek(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Configure(_, reply) | Self::Remove(_, reply) | Self::Abandon(_, reply) => {
                drop(reply.send(Err(error.clone())));
            }
        }
    }
}

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, GroupError>>;

/// A subscription that wants to be a member.
pub(crate) struct Join {
    pub(crate) member: MemberId,
    pub(crate) subscriber: Arc<Subscriber>,
    /// Where the group begins if it is made now.
    pub(crate) start_at: StartAt,
    pub(crate) settings: SettingsRequest,
    /// What comes from the group of the pattern that the topic matches.
    pub(crate) pattern: Option<OfPattern>,
}

/// What the group of a pattern brings along to each of its topics.
#[derive(Debug, Clone)]
pub(crate) struct OfPattern {
    /// What a group that is made now has where the request says nothing.
    pub(crate) settings: GroupSettings,
    /// The incarnation of the topic that the place to begin at is in.
    pub(crate) incarnation: u64,
}

/// Events to settle or extend by their ids.
pub(crate) struct SettleByIds {
    pub(crate) member: MemberId,
    pub(crate) ids: Vec<String>,
    pub(crate) what: Settlement,
}

/// Events to acknowledge by their ids, and what is published in the same step.
pub(crate) struct StepByIds {
    pub(crate) ids: Vec<String>,
    pub(crate) events: WholeBatch,
}

/// What to do with them.
pub(crate) enum Settlement {
    Ack,
    Nack(Refusal),
    /// Without a time, as long as leases are.
    Extend {
        extend_ms: Option<u64>,
    },
}

/// Where to set the cursor.
pub(crate) struct Seek {
    pub(crate) place: StartAt,
    pub(crate) dry_run: bool,
}
