//! PUBLISH frames that are committed by themselves, and replied to in their turn: of an event that is to be published later, and
//! of one that is published with other versions of itself.

use super::outbound::Outbound;
use super::publish_batch::write_api_error;
use crate::also_publish::{StoredVersions, Versions};
use crate::api_error::ApiError;
use crate::error_log::ErrorSource;
use crate::gateway::Gateway;
use crate::to_bus::{to_bus_publish_options, to_bus_schedule};
use prombus::Scheduled;
use prombus_api::frames::{Publish, PublishedFrame, write_also_published, write_scheduled};
use prombus_api::options::PublishOptions;
use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

enum Committed {
    Scheduled(Scheduled),
    Published(StoredVersions),
}

type Outcome = Result<Committed, ApiError>;

/// A frame that was sent to the bus.
pub(super) struct PendingCommit {
    commit: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    /// What the first poll brought, where that was enough.
    outcome: Option<Outcome>,
    corr: Option<Box<str>>,
    bytes: usize,
}

impl PendingCommit {
    /// Of an event that is to be published later.
    pub(super) fn schedule(
        gateway: &Gateway,
        topic: Arc<str>,
        publish: &Publish<'_>,
        corr: Option<&str>,
    ) -> Self {
        let bus = gateway.bus.clone();
        let payload = publish.payload.to_owned();
        let options = owned(&publish.options);
        let bytes = payload.len();
        let future = async move {
            let (event, when) = (to_bus_publish_options(&options), to_bus_schedule(&options));
            let scheduled = bus.schedule(&topic, &payload, &event, &when).await?;
            Ok(Committed::Scheduled(scheduled))
        };
        Self::new(Box::pin(future), bytes, corr)
    }

    /// Of an event with its other versions.
    pub(super) fn publish(gateway: Arc<Gateway>, versions: Versions, corr: Option<&str>) -> Self {
        let bytes = versions.bytes();
        let future = async move { Ok(Committed::Published(versions.publish(&gateway).await?)) };
        Self::new(Box::pin(future), bytes, corr)
    }

    fn new(
        commit: Pin<Box<dyn Future<Output = Outcome> + Send>>,
        bytes: usize,
        corr: Option<&str>,
    ) -> Self {
        Self {
            commit,
            outcome: None,
            corr: corr.map(Box::from),
            bytes,
        }
    }

    /// The bytes that are on their way to the store.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Begins the commit, so that later frames come after it.
    pub(super) fn begin(&mut self, context: &mut Context<'_>) {
        if let Poll::Ready(outcome) = self.commit.as_mut().poll(context) {
            self.outcome = Some(outcome);
        }
    }

    /// Writes the reply once the outcome is known.
    pub(super) fn poll_reply(
        &mut self,
        context: &mut Context<'_>,
        (gateway, source): (&Gateway, &ErrorSource<'_>),
        outbound: &mut Outbound,
    ) -> Poll<()> {
        let outcome = match self.outcome.take() {
            Some(outcome) => outcome,
            None => ready!(self.commit.as_mut().poll(context)),
        };
        let corr = self.corr.as_deref();
        match outcome {
            Ok(Committed::Scheduled(Scheduled { id, due, duplicate })) => {
                outbound.frame(|out| write_scheduled(out, id.as_str(), due, duplicate, corr));
            }
            Ok(Committed::Published(stored)) => {
                outbound.frame(|out| write_stored(out, &stored, corr));
            }
            Err(error) => {
                gateway.log_error(&error, source);
                write_api_error(outbound, &error, corr);
            }
        }
        Poll::Ready(())
    }
}

fn write_stored(out: &mut Vec<u8>, stored: &StoredVersions, corr: Option<&str>) {
    let Some(((_, first), others)) = stored.split_first() else {
        return;
    };
    let also = others.iter().map(|(topic, published)| PublishedFrame {
        topic: Cow::Borrowed(topic),
        id: Cow::Borrowed(published.id.as_str()),
        seq: published.seq,
        duplicate: published.duplicate,
    });
    let also: Vec<PublishedFrame<'_>> = also.collect();
    let place = (first.seq, first.ts);
    write_also_published(out, first.id.as_str(), place, first.duplicate, &also, corr);
}

fn owned(options: &PublishOptions<'_>) -> PublishOptions<'static> {
    let text = |text: &Option<Cow<'_, str>>| text.as_ref().map(|text| Cow::Owned(text.to_string()));
    PublishOptions {
        id: text(&options.id),
        ts: options.ts,
        key: text(&options.key),
        headers: options.headers.clone(),
        tags: options.tags.clone(),
        caused_by: options.caused_by.clone(),
        sid: text(&options.sid),
        expect_seq: options.expect_seq,
        expect_key_seq: options.expect_key_seq,
        deliver_at: options.deliver_at,
        delay_ms: options.delay_ms,
        every: text(&options.every),
        catch_up: options.catch_up,
        also_publish: Vec::new(),
    }
}
