//! AUTH, SUBSCRIBE and UNSUBSCRIBE: frames that change how later frames are interpreted.

use super::dispatcher::{Dispatcher, shutting_down};
use super::publish_batch::write_api_error;
use super::subscriptions::{MAX_SUBSCRIPTIONS, Member, topics};
use crate::api_error::ApiError;
use prombus::{Filter, SubscribeOptions};
use prombus_api::Code;
use prombus_api::frames::{Auth, GroupName, Subscribe, write_ok, write_subscribed};
use prombus_api::options;
use std::sync::Arc;

/// How many events are in flight on a socket unless its client says otherwise.
const MAX_IN_FLIGHT: usize = 100;
/// The most bytes of a subject that members are named with.
const MAX_SUBJECT_BYTES: usize = 128;

impl Dispatcher {
    /// Authenticates, at first or again; open subscriptions that the new token does not allow end.
    pub(super) async fn authenticate(&mut self, auth: &Auth<'_>, corr: Option<&str>) {
        self.wait_for_replies().await;
        let now_ms = self.gateway.now_ms();
        let token = auth.token.as_deref();
        let subject = self.peer.subject.as_deref();
        let granted = self.gateway.auth.authenticate_peer(token, subject, now_ms);
        match granted.await {
            Ok(grant) => {
                self.access.set(grant);
                self.outbound.take_arrays(auth.batch);
                self.outbound.frame(|out| write_ok(out, corr));
                self.end_forbidden();
            }
            Err(error) => {
                let error = error.into();
                self.log_error(&error);
                write_api_error(&mut self.outbound, &error, corr);
            }
        }
    }

    /// Ends subscriptions that the token does not allow.
    fn end_forbidden(&mut self) {
        let forbidden: Vec<(u64, ApiError)> = self
            .subscriptions
            .iter()
            .filter_map(|member| {
                let group = Some(&*member.group).filter(|_| !member.is_ephemeral);
                let error = self.access.subscribe(member.topics(), group).err()?;
                Some((member.number, error))
            })
            .collect();
        for (number, mut error) in forbidden {
            if let Some(member) = self.subscriptions.remove(&self.gateway, number) {
                let (topic, group) = (&member.topic, &member.group);
                error.message = format!(
                    "subscription of group {group} to {topic} ended: {}",
                    error.message
                );
                write_api_error(&mut self.outbound, &error, None);
            }
        }
    }

    pub(super) async fn subscribe(
        &mut self,
        subscribe: &Subscribe<'_>,
        corr: Option<&str>,
    ) -> Result<(), ApiError> {
        self.wait_for_replies().await;
        let (topic, group) = (&*subscribe.topic, subscribe.group.as_deref());
        self.check_subscribe(topic, group, &subscribe.options.topics)?;
        let mut options = bus_options(&subscribe.options);
        options.extras.member = Some(self.member_name());
        let bus = &self.gateway.bus;
        let subscribed = match group {
            Some(group) => bus.subscribe(topic, group, options).await,
            None => bus.subscribe_ephemeral(topic, options).await,
        };
        let member = Member::new(
            (topic.into(), group.map(Arc::from)),
            subscribe.options.topics.clone(),
            subscribed?,
            self.task.clone(),
            self.gateway.monotonic_ms(),
        );
        self.outbound
            .frame(|out| write_subscribed(out, &member.group, corr));
        self.subscriptions.add(member);
        Ok(())
    }

    pub(super) async fn unsubscribe(
        &mut self,
        name: &GroupName<'_>,
        corr: Option<&str>,
    ) -> Result<(), ApiError> {
        // Earlier acknowledgements are settled before the leases are released.
        self.wait_for_replies().await;
        let number = self.subscriptions.named(&name.topic, &name.group)?.number;
        self.subscriptions.remove(&self.gateway, number);
        self.outbound.frame(|out| write_ok(out, corr));
        Ok(())
    }

    fn check_subscribe(
        &mut self,
        topic: &str,
        group: Option<&str>,
        more: &[String],
    ) -> Result<(), ApiError> {
        if self.is_draining {
            return Err(shutting_down());
        }
        self.access.subscribe(topics(topic, more), group)?;
        if let Some(group) = group
            && self.subscriptions.find(topic, group).is_some()
        {
            let message =
                format!("group {group} is already subscribed to {topic} on this connection");
            return Err(ApiError::new(Code::AlreadySubscribed, message));
        }
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            let message =
                format!("too many subscriptions; at most {MAX_SUBSCRIPTIONS} per connection");
            return Err(ApiError::new(Code::BadFrame, message));
        }
        Ok(())
    }

    /// How groups name this client in explanations and in the history of dead letters.
    fn member_name(&self) -> String {
        let subject = self.access.subject();
        match subject.filter(|subject| subject.len() <= MAX_SUBJECT_BYTES) {
            Some(subject) => format!("{subject}@{}", self.peer.address),
            None => format!("ws@{}", self.peer.address),
        }
    }
}

/// Converts the options of the wire to those of the bus.
fn bus_options(options: &options::SubscribeOptions) -> SubscribeOptions {
    let defaults = SubscribeOptions::default();
    SubscribeOptions {
        from: options.start.clone().unwrap_or_default(),
        batch_size: options.batch_size.unwrap_or(defaults.batch_size),
        max_in_flight: options.max_in_flight.unwrap_or(MAX_IN_FLIGHT),
        ack_timeout_ms: options.ack_timeout_ms,
        max_attempts: options.max_attempts,
        ordering: options.ordering,
        filter: options.filter.clone().map(Filter::Fields),
        topics: options.topics.clone(),
        manual_ack: true,
        upcast: options.upcast.unwrap_or(false),
        partitioned: options.partitioned,
        ..defaults
    }
}
