//! What the server says: replies to publishes and requests, deliveries, errors.

use super::handshake::{AUTH_CORR, protocol, server_error};
use super::requests::{Request, is_retryable, reply, reply_ack_publish};
use super::session::Session;
use super::{EntryState, SessionEnd};
use crate::error::{AckPublishError, ConnectError, PublishError, ServerError, SettleError};
use crate::id::Id;
use crate::publish::Published;
use crate::publish::outbox::Reply;
use crate::socket::SocketError;
use crate::subscription::shared::{QueuedDelivery, Shared};
use crate::subscription::{Context, Event};
use prombus_api::Code;
use prombus_api::frames::{
    ErrorFrame, EventFrame, OkFrame, Partitions, PublishedFrame, ServerFrame, ServerFrames,
};
use std::sync::Arc;

impl Session<'_> {
    /// Takes a message in.
    pub(super) fn take(&mut self, text: &str) -> Result<(), SessionEnd> {
        self.has_received = true;
        let taken = self.take_frames(text);
        // What came before something went wrong counts all the same.
        let completed = self.complete();
        taken.and(completed)
    }

    fn take_frames(&mut self, text: &str) -> Result<(), SessionEnd> {
        let mut current: Option<Arc<Shared>> = None;
        // Events keep the text, so a message with events is copied once for all of them.
        let mut message: Option<Arc<str>> = None;
        let mut taken = Ok(());
        for frame in ServerFrames::new(text) {
            taken = match frame {
                Ok(ServerFrame::Event(event)) => {
                    let message = message.get_or_insert_with(|| text.into());
                    self.event(text, message, &event, &mut current)
                }
                Ok(ServerFrame::Ok(ok)) => self.ok(&ok),
                Ok(ServerFrame::Error(error)) => self.error(&error),
                Ok(ServerFrame::Assign(assigned)) => {
                    // Their events come behind it.
                    self.change_partitions(&assigned, |shared| {
                        shared.assign(&assigned.topic, &assigned.partitions);
                    });
                    Ok(())
                }
                Ok(ServerFrame::Revoke(revoked)) => {
                    // What came before it is dropped with the rest.
                    let delivered = self.deliver(current.take().as_ref());
                    self.change_partitions(&revoked, |shared| {
                        shared.revoke(&revoked.topic, &revoked.partitions);
                    });
                    delivered
                }
                // Frames that a newer server may send are not for this version.
                Err(error) if error.code == Code::UnknownOp => Ok(()),
                Err(error) => Err(self.violation(error.message)),
            };
            if taken.is_err() {
                break;
            }
        }
        let delivered = self.deliver(current.as_ref());
        taken.and(delivered)
    }

    /// Puts an event with those before it, which are for the same subscription mostly.
    fn event(
        &mut self,
        text: &str,
        message: &Arc<str>,
        frame: &EventFrame<'_>,
        current: &mut Option<Arc<Shared>>,
    ) -> Result<(), SessionEnd> {
        let found = self
            .routes
            .find(&self.link.subscriptions, &frame.topic, &frame.group);
        // One that was let go of a moment ago gets its last events; their leases are free already.
        let Some(number) = found else {
            return Ok(());
        };
        let topic = self.routes.name(&frame.event.topic);
        let arrived = QueuedDelivery {
            event: Event::new(text, message, topic, frame),
            context: Context {
                attempt: frame.attempt,
                max_attempts: frame.max_attempts,
                ack_deadline_ms: frame.ack_deadline_ms,
                shadow: frame.shadow,
            },
        };
        if current
            .as_ref()
            .is_none_or(|shared| shared.number != number)
        {
            self.deliver(current.as_ref())?;
            let entry = self.link.subscriptions.get(&number);
            *current = entry.map(|entry| entry.shared.clone());
        }
        self.arriving.push(arrived);
        Ok(())
    }

    fn change_partitions(&mut self, frame: &Partitions<'_>, change: impl FnOnce(&Arc<Shared>)) {
        let found = self
            .routes
            .find(&self.link.subscriptions, &frame.topic, &frame.group);
        if let Some(entry) = found.and_then(|number| self.link.subscriptions.get(&number)) {
            change(&entry.shared);
        }
    }

    fn deliver(&mut self, current: Option<&Arc<Shared>>) -> Result<(), SessionEnd> {
        let delivered = match current {
            Some(shared) => shared.deliver(&mut self.arriving),
            None => Ok(()),
        };
        delivered.map_err(|_| self.violation("more events than maxInFlight came".to_owned()))
    }

    fn ok(&mut self, ok: &OkFrame<'_>) -> Result<(), SessionEnd> {
        let Some(corr) = ok.corr.as_deref() else {
            return Ok(());
        };
        if let Ok(number) = corr.parse() {
            let due = ok.due.filter(|_| ok.scheduled);
            let seq = ok.seq.or(due.map(|_| 0));
            let (Some(id), Some(seq)) = (ok.id.as_deref().and_then(Id::from_client), seq) else {
                return Err(self.violation("the OK of a PUBLISH has no id or no seq".to_owned()));
            };
            let duplicate = ok.duplicate;
            let outcome = Ok(Published {
                id,
                seq,
                due,
                duplicate,
            });
            self.replies.push(Reply { number, outcome });
            return Ok(());
        }
        match self.link.requests.take(corr) {
            Some(Request::Subscribe(number)) => {
                if let Some(entry) = self.link.subscriptions.get_mut(&number) {
                    entry.state = EntryState::Open;
                    entry.was_open = true;
                    entry.shared.open(ok.group.as_deref());
                    let shared = entry.shared.clone();
                    self.routes.forget();
                    self.mark_dirty(shared);
                }
            }
            Some(Request::Acks(shared, run)) => shared.acknowledged(&run.ids),
            Some(Request::Confirm(confirm)) => reply(confirm, Ok(())),
            Some(Request::AckPublish(op)) => {
                let published = ok.published.iter().map(published);
                let Some(published) = published.collect() else {
                    return Err(self.violation("an id in the OK of an ACK is none".to_owned()));
                };
                reply_ack_publish(op, Ok(published));
            }
            Some(Request::Unsubscribe(Some(gone))) => drop(gone.send(())),
            Some(Request::Unsubscribe(None) | Request::Settle) | None => {}
        }
        Ok(())
    }

    fn error(&mut self, frame: &ErrorFrame<'_>) -> Result<(), SessionEnd> {
        let error = server_error(frame);
        let Some(corr) = frame.corr.as_deref() else {
            return self.error_of_connection(error);
        };
        if let Ok(number) = corr.parse() {
            return self.publish_error(number, error);
        }
        if corr == AUTH_CORR {
            return self.error_of_connection(error);
        }
        match self.link.requests.take(corr) {
            Some(Request::Subscribe(number)) => self.subscribe_error(number, error)?,
            Some(Request::Acks(shared, run)) if is_retryable(&error) => shared.ack_again(run),
            Some(Request::Acks(shared, run)) => shared.acknowledged(&run.ids),
            Some(Request::Confirm(confirm)) => reply(confirm, Err(SettleError::Refused(error))),
            Some(Request::AckPublish(op)) => {
                reply_ack_publish(op, Err(AckPublishError::Refused(error)))
            }
            Some(Request::Unsubscribe(Some(gone))) => drop(gone.send(())),
            Some(Request::Unsubscribe(None) | Request::Settle) | None => {}
        }
        Ok(())
    }

    /// A server that goes down did not store the event. Where that is safe it is sent to the next one.
    fn publish_error(&mut self, number: u64, error: ServerError) -> Result<(), SessionEnd> {
        if error.code == Code::ShuttingDown.as_str() {
            self.complete()?;
            if self.link.core.outbox().next_may_be_sent_again(number) {
                return Err(self.shutting_down(&error));
            }
        }
        let outcome = Err(PublishError::Refused(error));
        self.replies.push(Reply { number, outcome });
        Ok(())
    }

    fn subscribe_error(&mut self, number: u64, error: ServerError) -> Result<(), SessionEnd> {
        let Some(entry) = self.link.subscriptions.get_mut(&number) else {
            return Ok(());
        };
        if entry.was_open && is_retryable(&error) {
            return Err(self.shutting_down(&error));
        }
        let shared = entry.shared.clone();
        shared.refuse(error);
        self.forget(&shared);
        Ok(())
    }

    /// An error that answers no frame is about the connection, or says that a subscription has ended. All other frames
    /// are acknowledged under their `corr`, so the next connection, which subscribes anew, finds out which one.
    fn error_of_connection(&self, error: ServerError) -> Result<(), SessionEnd> {
        match Code::parse(&error.code) {
            Some(Code::RateLimited | Code::Forbidden) | None => Ok(()),
            Some(Code::BadToken | Code::Unauthorized | Code::TokenExpired)
                if !self.link.core.options.token.is_fresh() =>
            {
                Err(SessionEnd::Permanent(ConnectError::Refused(error)))
            }
            Some(_) => Err(self.shutting_down(&error)),
        }
    }

    /// Hands the replies that were gathered to their waiters.
    fn complete(&mut self) -> Result<(), SessionEnd> {
        if self.replies.is_empty() {
            return Ok(());
        }
        let link = &mut *self.link;
        let completed = link
            .core
            .outbox()
            .complete(&mut link.sent, self.replies.drain(..));
        match completed {
            Ok(completed) => link.core.complete(completed),
            Err(_) => {
                let why = "the replies to PUBLISH are not in their order".to_owned();
                return Err(self.violation(why));
            }
        }
        Ok(())
    }

    fn violation(&self, why: String) -> SessionEnd {
        SessionEnd::Lost(protocol(&self.link.core.endpoint, why))
    }

    fn shutting_down(&self, error: &ServerError) -> SessionEnd {
        self.lost(&SocketError::Gone(error.to_string()))
    }
}

/// An event that a step published, unless its id is none.
fn published(frame: &PublishedFrame<'_>) -> Option<Published> {
    Some(Published {
        id: Id::from_client(&frame.id)?,
        seq: frame.seq,
        due: None,
        duplicate: frame.duplicate,
    })
}
