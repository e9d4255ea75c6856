//! AUTH, SUBSCRIBE and UNSUBSCRIBE: the frames that change what the frames behind them mean.

use super::conversation::{Conversation, shutting_down};
use super::publishing::write_denied;
use super::subscriptions::{MAX_SUBSCRIPTIONS, Member, topics};
use crate::denied::Denied;
use crate::to_bus::{to_bus_filter, to_bus_ordering};
use prombus::{StartAt, SubscribeOptions};
use prombus_api::Code;
use prombus_api::frames::{Auth, GroupName, Subscribe, write_ok, write_subscribed};
use prombus_api::options::{self, Position};
use std::sync::Arc;

/// How many events are in flight on a socket unless its client says otherwise.
const MAX_IN_FLIGHT: usize = 100;
/// The most bytes of a subject that members are named with.
const MAX_SUBJECT_BYTES: usize = 128;

impl Conversation {
    /// Takes a token: the first, or a fresh one, under which open subscriptions go on if it allows them.
    pub(super) async fn authenticate(&mut self, auth: &Auth<'_>, corr: Option<&str>) {
        self.answer_all().await;
        let now_ms = self.gateway.now_ms();
        let token = auth.token.as_deref();
        match self.gateway.auth.authenticate(token, now_ms).await {
            Ok(grant) => {
                self.access.set(grant);
                self.outbound.take_arrays(auth.batch);
                self.outbound.frame(|out| write_ok(out, corr));
                self.end_forbidden();
            }
            Err(error) => {
                let why = error.into();
                self.gateway.note(&why);
                write_denied(&mut self.outbound, &why, corr);
            }
        }
    }

    /// Ends subscriptions that the token does not allow.
    fn end_forbidden(&mut self) {
        let forbidden: Vec<(u64, Denied)> = self
            .subscriptions
            .iter()
            .filter_map(|member| {
                let group = Some(&*member.group).filter(|_| !member.is_ephemeral);
                let why = self.access.subscribe(member.topics(), group).err()?;
                Some((member.number, why))
            })
            .collect();
        for (number, mut why) in forbidden {
            if let Some(member) = self.subscriptions.remove(&self.gateway, number) {
                let (topic, group) = (&member.topic, &member.group);
                why.message = format!(
                    "the subscription of {group} to {topic} ended: {}",
                    why.message
                );
                write_denied(&mut self.outbound, &why, None);
            }
        }
    }

    pub(super) async fn subscribe(
        &mut self,
        subscribe: &Subscribe<'_>,
        corr: Option<&str>,
    ) -> Result<(), Denied> {
        self.answer_all().await;
        let (topic, group) = (&*subscribe.topic, subscribe.group.as_deref());
        self.check_subscribe(topic, group, &subscribe.options.topics)?;
        let mut options = bus_options(&subscribe.options)?;
        options.member = Some(self.member_name());
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
            self.gateway.now_ms(),
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
    ) -> Result<(), Denied> {
        // What was acknowledged before is settled before its leases are freed.
        self.answer_all().await;
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
    ) -> Result<(), Denied> {
        if self.is_draining {
            return Err(shutting_down());
        }
        self.access.subscribe(topics(topic, more), group)?;
        if let Some(group) = group
            && self.subscriptions.find(topic, group).is_some()
        {
            let why = format!("group {group} is subscribed to {topic} on this connection");
            return Err(Denied::new(Code::AlreadySubscribed, why));
        }
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            let why = format!("a connection may have {MAX_SUBSCRIPTIONS} subscriptions");
            return Err(Denied::new(Code::BadFrame, why));
        }
        Ok(())
    }

    /// How groups name this client in explanations and in the history of dead letters.
    fn member_name(&self) -> String {
        let subject = self.access.subject();
        match subject.filter(|subject| subject.len() <= MAX_SUBJECT_BYTES) {
            Some(subject) => format!("{subject}@{}", self.peer),
            None => format!("ws@{}", self.peer),
        }
    }
}

/// The options in the bus's own terms.
fn bus_options(options: &options::SubscribeOptions) -> Result<SubscribeOptions, Denied> {
    let defaults = SubscribeOptions::default();
    Ok(SubscribeOptions {
        from: options.start.as_ref().map_or(StartAt::Latest, start_at),
        batch_size: options.batch_size.unwrap_or(defaults.batch_size),
        max_in_flight: options.max_in_flight.unwrap_or(MAX_IN_FLIGHT),
        ack_timeout_ms: options.ack_timeout_ms,
        max_attempts: options.max_attempts,
        ordering: options.ordering.map(to_bus_ordering),
        filter: options.filter.as_ref().map(to_bus_filter).transpose()?,
        topics: options.topics.clone(),
        manual_ack: true,
        ..defaults
    })
}

fn start_at(position: &Position) -> StartAt {
    match position {
        Position::Latest => StartAt::Latest,
        Position::Earliest => StartAt::Earliest,
        Position::Ts(ts) => StartAt::Ts(*ts),
        Position::AfterId(id) => StartAt::AfterId(id.clone()),
        Position::Seq(seq) => StartAt::Seq(*seq),
    }
}
