//! One request on its way to what answers it: who asks, what for, and what they may do.

use super::body;
use super::connection::Connection;
use crate::auth::{Action, Grant, Policy};
use crate::credentials;
use crate::denied::Denied;
use crate::gateway::Gateway;
use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::response::Response;
use prombus::{StartAt, check_group, check_topic};
use prombus_api::Code;
use prombus_api::http::Query;
use prombus_api::options::Position;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// What a route answers.
pub(super) type Answer = Pin<Box<dyn Future<Output = Result<Response, Denied>> + Send>>;

/// Requests whose bodies are JSON may have this much beside the payloads in them.
const MAX_BODY_BYTES: usize = 1 << 20;

/// A request by somebody who showed a token, where one is needed.
pub(super) struct Call {
    pub(super) connection: Arc<Connection>,
    pub(super) parts: Parts,
    /// Behind a lock that nobody ever waits for: a body cannot be shared, and a call is across waits.
    body: Mutex<Body>,
    pub(super) grant: Grant,
    /// The topic in the path, decoded and checked; empty where the path has none.
    pub(super) topic: String,
    /// The key in the path, decoded; empty where the path has none.
    pub(super) key: String,
}

/// The names in a path as they are written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PathNames<'a> {
    pub(super) topic: Option<&'a str>,
    pub(super) key: Option<&'a str>,
}

/// The same as they are meant.
pub(super) struct DecodedNames {
    topic: Result<String, Denied>,
    key: Result<String, Denied>,
}

impl PathNames<'_> {
    /// Takes the percent signs out. What is wrong with them is told to those who have shown their token.
    pub(super) fn decoded(self) -> DecodedNames {
        let nothing = || Ok(String::new());
        let decoded_key = |key| decoded("key", key, Code::BadFrame);
        DecodedNames {
            topic: self.topic.map_or_else(nothing, decoded_topic),
            key: self.key.map_or_else(nothing, decoded_key),
        }
    }
}

impl Call {
    pub(super) async fn new(
        connection: Arc<Connection>,
        parts: Parts,
        body: Body,
        names: DecodedNames,
        is_open: bool,
    ) -> Result<Self, Denied> {
        let grant = match is_open {
            true => nothing(),
            false => authenticate(&connection.gateway, &parts).await?,
        };
        Ok(Self {
            connection,
            parts,
            body: Mutex::new(body),
            grant,
            topic: names.topic?,
            key: names.key?,
        })
    }

    pub(super) fn gateway(&self) -> &Arc<Gateway> {
        &self.connection.gateway
    }

    /// The parameters.
    pub(super) fn query(&self) -> Result<Query<'_>, Denied> {
        Ok(Query::parse(self.parts.uri.query().unwrap_or_default())?)
    }

    /// The whole body of a route that takes JSON.
    pub(super) async fn json(&mut self) -> Result<Bytes, Denied> {
        let limit = MAX_BODY_BYTES + self.gateway().options.limits.max_payload_bytes;
        self.whole_body(limit).await
    }

    /// The whole body, if it has at most `limit` bytes.
    pub(super) async fn whole_body(&mut self, limit: usize) -> Result<Bytes, Denied> {
        let timeout_ms = self.gateway().options.request_timeout_ms;
        let body = self.take_body();
        body::whole(body, &self.parts.headers, limit, timeout_ms).await
    }

    /// The body, for whoever reads it piece by piece.
    pub(super) fn take_body(&mut self) -> Body {
        let body = self.body.get_mut();
        std::mem::take(body.unwrap_or_else(PoisonError::into_inner))
    }

    /// Refuses names that are none.
    pub(super) fn check(&self, topic: &str, group: Option<&str>) -> Result<(), Denied> {
        let bad = |code, why: &dyn std::fmt::Display| Denied::new(code, why.to_string());
        check_topic(topic).map_err(|error| bad(Code::BadTopic, &error))?;
        let group = group.map_or(Ok(()), check_group);
        group.map_err(|error| bad(Code::BadGroup, &error))
    }

    /// Refuses names that are none, and what the token does not allow.
    pub(super) fn allow(
        &self,
        action: Action,
        topic: &str,
        group: Option<&str>,
    ) -> Result<(), Denied> {
        self.check(topic, group)?;
        match self.grant.policy.may(action, topic, group) {
            true => Ok(()),
            false => Err(forbidden(action, topic, group)),
        }
    }

    /// The same for what both readers and administrators may do.
    pub(super) fn allow_looking(&self, topic: &str, group: Option<&str>) -> Result<(), Denied> {
        self.check(topic, group)?;
        match self.may_look(topic, group) {
            true => Ok(()),
            false => Err(forbidden(Action::Subscribe, topic, group)),
        }
    }

    /// Whether somebody may know of a group.
    pub(super) fn may_look(&self, topic: &str, group: Option<&str>) -> bool {
        let may = |action| self.grant.policy.may(action, topic, group);
        may(Action::Subscribe) || may(Action::Admin)
    }

    /// Whether somebody may know of a topic.
    pub(super) fn may_see(&self, topic: &str) -> bool {
        self.may_look(topic, None) || self.grant.policy.may(Action::Publish, topic, None)
    }

    /// A topic that is there, by its shared name.
    pub(super) fn known(&self, topic: &str) -> Result<Arc<str>, Denied> {
        Ok(self.gateway().bus.topic(topic)?.name)
    }
}

/// A place as the bus names it.
pub(super) fn start_at(position: Position) -> StartAt {
    match position {
        Position::Latest => StartAt::Latest,
        Position::Earliest => StartAt::Earliest,
        Position::Ts(ts) => StartAt::Ts(ts),
        Position::AfterId(id) => StartAt::AfterId(id),
        Position::Seq(seq) => StartAt::Seq(seq),
    }
}

pub(super) fn forbidden(action: Action, topic: &str, group: Option<&str>) -> Denied {
    let action = match action {
        Action::Publish => "publish to",
        Action::Subscribe => "read",
        Action::Admin => "administer",
    };
    let group = group.map_or(String::new(), |group| format!(" as group {group}"));
    let why = format!("the token does not allow to {action} topic {topic}{group}");
    Denied::new(Code::Forbidden, why)
}

/// What a route that is open to all needs: no rights.
fn nothing() -> Grant {
    Grant {
        policy: Arc::new(Policy::default()),
        ..Grant::everything()
    }
}

async fn authenticate(gateway: &Gateway, parts: &Parts) -> Result<Grant, Denied> {
    let token = credentials::token_of(parts)?;
    let granted = gateway
        .auth
        .authenticate(token.as_deref(), gateway.now_ms());
    Ok(granted.await?)
}

fn decoded_topic(written: &str) -> Result<String, Denied> {
    let topic = decoded("topic", written, Code::BadTopic)?;
    check_topic(&topic).map_err(|error| Denied::new(Code::BadTopic, error.to_string()))?;
    Ok(topic)
}

fn decoded(name: &str, written: &str, code: Code) -> Result<String, Denied> {
    if !written.contains(['%', '&', '+']) {
        return Ok(written.to_owned());
    }
    // A plus sign and an ampersand are themselves in a path; in a query they would mean something.
    let written = written.replace('+', "%2B").replace('&', "%26");
    let parameter = format!("{name}={written}");
    let query = Query::parse(&parameter).map_err(|_| {
        let why = format!("the {name} in the path is not percent-encoded UTF-8");
        Denied::new(code, why)
    })?;
    Ok(query.get(name).unwrap_or_default().to_owned())
}
