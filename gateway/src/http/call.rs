//! One authenticated request, as handlers see it.

use super::body::{self, BodyReader, RequestBody};
use super::connection::Connection;
use super::message::Response;
use crate::api_error::ApiError;
use crate::auth::{Action, Grant, Policy};
use crate::credentials;
use crate::gateway::Gateway;
use hyper::body::Bytes;
use hyper::http::request::Parts;
use prombus::{check_group, check_topic};
use prombus_api::Code;
use prombus_api::http::Query;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// What a route answers.
pub(super) type Answer = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>>;

/// Requests whose bodies are JSON may have this much beside the payloads in them.
const MAX_BODY_BYTES: usize = 1 << 20;

/// An authenticated request.
pub(super) struct Call {
    pub(super) connection: Arc<Connection>,
    pub(super) parts: Parts,
    body: RequestBody,
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
    topic: Result<String, ApiError>,
    key: Result<String, ApiError>,
}

impl PathNames<'_> {
    /// Percent-decodes the names. Errors are reported after authentication.
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
        body: RequestBody,
        names: DecodedNames,
        is_open: bool,
    ) -> Result<Self, ApiError> {
        let grant = if is_open {
            nothing()
        } else {
            authenticate(&connection, &parts).await?
        };
        connection.set_subject(grant.subject.clone());
        Ok(Self {
            connection,
            parts,
            body,
            grant,
            topic: names.topic?,
            key: names.key?,
        })
    }

    pub(super) fn gateway(&self) -> &Arc<Gateway> {
        &self.connection.gateway
    }

    /// The parameters.
    pub(super) fn query(&self) -> Result<Query<'_>, ApiError> {
        Ok(Query::parse(self.parts.uri.query().unwrap_or_default())?)
    }

    /// The whole body of a route that takes JSON.
    pub(super) async fn json(&mut self) -> Result<Bytes, ApiError> {
        let limit = MAX_BODY_BYTES + self.gateway().options.limits.max_payload_bytes;
        self.whole_body(limit).await
    }

    /// The whole body, if it has at most `limit` bytes.
    pub(super) async fn whole_body(&mut self, limit: usize) -> Result<Bytes, ApiError> {
        let announced = body::announced_bytes(&self.parts.headers);
        body::whole(self.body_reader(), announced, limit).await
    }

    /// The body, to be read piece by piece.
    pub(super) fn body_reader(&mut self) -> BodyReader {
        BodyReader::new(self.body.clone(), self.gateway().options.request_timeout_ms)
    }

    /// Refuses names that are none.
    pub(super) fn check(&self, topic: &str, group: Option<&str>) -> Result<(), ApiError> {
        check_topic(topic)?;
        Ok(group.map_or(Ok(()), check_group)?)
    }

    /// Refuses names that are none, and what the token does not allow.
    pub(super) fn allow(
        &self,
        action: Action,
        topic: &str,
        group: Option<&str>,
    ) -> Result<(), ApiError> {
        self.check(topic, group)?;
        if self.grant.policy.may(action, topic, group) {
            Ok(())
        } else {
            Err(forbidden(action, topic, group))
        }
    }

    /// The same for what both readers and administrators may do.
    pub(super) fn allow_looking(&self, topic: &str, group: Option<&str>) -> Result<(), ApiError> {
        self.check(topic, group)?;
        if self.may_look(topic, group) {
            Ok(())
        } else {
            Err(forbidden(Action::Subscribe, topic, group))
        }
    }

    /// Whether the caller may see a group.
    pub(super) fn may_look(&self, topic: &str, group: Option<&str>) -> bool {
        let may = |action| self.grant.policy.may(action, topic, group);
        may(Action::Subscribe) || may(Action::Admin)
    }

    /// Whether the caller may see a topic.
    pub(super) fn may_see(&self, topic: &str) -> bool {
        self.may_look(topic, None) || self.grant.policy.may(Action::Publish, topic, None)
    }

    /// A topic that is there, by its shared name.
    pub(super) fn known(&self, topic: &str) -> Result<Arc<str>, ApiError> {
        Ok(self.gateway().bus.topic(topic)?.name)
    }
}

pub(super) fn forbidden(action: Action, topic: &str, group: Option<&str>) -> ApiError {
    let action = match action {
        Action::Publish => "publish to",
        Action::Subscribe => "subscribe to",
        Action::Admin => "administer",
    };
    let group = group.map_or(String::new(), |group| format!(" as group {group}"));
    let message = format!("token may not {action} {topic}{group}");
    ApiError::new(Code::Forbidden, message)
}

/// What a route that is open to all needs: no rights.
fn nothing() -> Grant {
    Grant {
        policy: Arc::new(Policy::default()),
        ..Grant::everything()
    }
}

async fn authenticate(connection: &Connection, parts: &Parts) -> Result<Grant, ApiError> {
    let gateway = &connection.gateway;
    let token = credentials::token_of(parts)?;
    let subject = connection.peer.subject.as_deref();
    let granted = gateway
        .auth
        .authenticate_peer(token.as_deref(), subject, gateway.now_ms());
    Ok(granted.await?)
}

fn decoded_topic(written: &str) -> Result<String, ApiError> {
    let topic = decoded("topic", written, Code::BadTopic)?;
    check_topic(&topic)?;
    Ok(topic)
}

fn decoded(name: &str, written: &str, code: Code) -> Result<String, ApiError> {
    if !written.contains(['%', '&', '+']) {
        return Ok(written.to_owned());
    }
    // A plus sign and an ampersand are themselves in a path; in a query they would mean something.
    let written = written.replace('+', "%2B").replace('&', "%26");
    let parameter = format!("{name}={written}");
    let query = Query::parse(&parameter).map_err(|_| {
        let message = format!("{name} in the path is not percent-encoded UTF-8");
        ApiError::new(code, message)
    })?;
    Ok(query.get(name).unwrap_or_default().to_owned())
}
