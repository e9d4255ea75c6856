//! What the client of one connection may do. The answer for a topic is remembered, so that publishing to it again
//! walks through no rules.

use crate::api_error::ApiError;
use crate::auth::{Action, Coverage, Grant, Policy};
use prombus::{Pattern, check_group, check_topic};
use prombus_api::Code;
use std::collections::HashMap;
use std::sync::Arc;

/// The most topics that are remembered; beyond it the memory starts afresh.
const MAX_REMEMBERED_TOPICS: usize = 1_024;

/// What a connection may do: nothing before it has shown a token.
#[derive(Debug)]
pub(super) struct Access {
    grant: Option<Grant>,
    /// Topics that were requested, by name.
    places: HashMap<Arc<str>, usize>,
    topics: Vec<(Arc<str>, bool)>,
    /// The last topic, because publishers mostly stay with one.
    latest: usize,
}

impl Access {
    pub(super) fn new(grant: Option<Grant>) -> Self {
        Self {
            grant,
            places: HashMap::new(),
            topics: Vec::new(),
            latest: 0,
        }
    }

    /// From now on this is what it may do.
    pub(super) fn set(&mut self, grant: Grant) {
        *self = Self::new(Some(grant));
    }

    pub(super) fn is_granted(&self) -> bool {
        self.grant.is_some()
    }

    /// Whose token it is, where that is known.
    pub(super) fn subject(&self) -> Option<&str> {
        self.grant.as_ref()?.subject.as_deref()
    }

    pub(super) fn expires_at_ms(&self) -> Option<u64> {
        self.grant.as_ref()?.expires_at_ms
    }

    pub(super) fn is_expired(&self, now_ms: u64) -> bool {
        self.grant
            .as_ref()
            .is_some_and(|grant| grant.is_expired(now_ms))
    }

    /// The topic's shared name, where it may be published to.
    pub(super) fn publish(&mut self, topic: &str) -> Result<&Arc<str>, ApiError> {
        let at = match self.topics.get(self.latest) {
            Some((name, _)) if **name == *topic => self.latest,
            _ => self.look_up(topic)?,
        };
        self.latest = at;
        match &self.topics[at] {
            (name, true) => Ok(name),
            (name, false) => Err(forbidden("publish to", name)),
        }
    }

    /// Whether these topics, some of them patterns perhaps, may be subscribed to as this group.
    pub(super) fn subscribe<'a>(
        &self,
        topics: impl Iterator<Item = &'a str>,
        group: Option<&str>,
    ) -> Result<(), ApiError> {
        let policy = self.policy()?;
        if let Some(group) = group {
            check_group(group)?;
        }
        for topic in topics {
            let allowed = if Pattern::is_pattern(topic) {
                let pattern = Pattern::for_topics(topic)?;
                policy.covers(Action::Subscribe, &pattern, group) == Coverage::All
            } else {
                check_topic(topic)?;
                policy.may(Action::Subscribe, topic, group)
            };
            if !allowed {
                return Err(forbidden("subscribe to", topic));
            }
        }
        Ok(())
    }

    /// Fails before a token was shown.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        self.policy().map(drop)
    }

    fn policy(&self) -> Result<&Policy, ApiError> {
        match &self.grant {
            Some(grant) => Ok(&grant.policy),
            None => Err(crate::auth::AuthError::Missing.into()),
        }
    }

    fn look_up(&mut self, topic: &str) -> Result<usize, ApiError> {
        if let Some(&at) = self.places.get(topic) {
            return Ok(at);
        }
        let policy = self.policy()?;
        check_topic(topic)?;
        let allowed = policy.may(Action::Publish, topic, None);
        if self.topics.len() >= MAX_REMEMBERED_TOPICS {
            self.places.clear();
            self.topics.clear();
        }
        let name: Arc<str> = topic.into();
        let at = self.topics.len();
        self.places.insert(name.clone(), at);
        self.topics.push((name, allowed));
        Ok(at)
    }
}

fn forbidden(what: &str, topic: &str) -> ApiError {
    ApiError::new(Code::Forbidden, format!("token may not {what} {topic}"))
}
