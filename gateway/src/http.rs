//! HTTP: the table of routes. Authentication, CORS, HEAD and errors are handled here for all of them, so that a route
//! cannot forget them. A new route is one entry in [`ROUTES`] and one in the OpenAPI document.

mod attention;
mod body;
mod bulk;
mod call;
mod causes;
mod cloudevents;
mod connection;
mod cors;
mod dashboard;
mod dead_letters;
mod diff;
mod documents;
mod events;
mod export;
mod find;
mod groups;
mod gzip;
mod health;
mod histogram;
mod history;
mod lines;
mod list;
mod message;
mod nodes;
mod pages;
mod parameters;
mod publish;
mod publish_atomic;
mod pull;
mod redrive;
mod reply;
mod schedules;
mod schemas;
mod settle;
mod snap;
mod sse;
mod status;
mod stream;
#[cfg(test)]
mod tests;
mod topics;

pub(crate) use connection::Connection;
pub(crate) use message::{Body, Request, Response};
pub(crate) use pull::PullConsumers;
pub(crate) use reply::error;

use crate::api_error::ApiError;
use crate::node_link;
use crate::origin;
use crate::session;
use body::RequestBody;
use call::{Answer, Call, PathNames};
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Method, header};
use prombus_api::Code;
use std::sync::Arc;

/// A path and its handlers.
struct Route {
    /// As in the OpenAPI document; one segment may be `{topic}`, and `{key}` or `{version}` behind it, or `{id}`, is all
    /// that follows.
    path: &'static str,
    /// Whether it needs no token.
    is_open: bool,
    methods: &'static [(Method, Handler)],
}

type Handler = fn(Call) -> Answer;

const fn route(path: &'static str, methods: &'static [(Method, Handler)]) -> Route {
    Route {
        path,
        is_open: false,
        methods,
    }
}

const fn open(path: &'static str, methods: &'static [(Method, Handler)]) -> Route {
    Route {
        path,
        is_open: true,
        methods,
    }
}

/// Every route. GET handlers serve HEAD too.
const ROUTES: &[Route] = &[
    route(
        "/publish",
        &[(Method::POST, |call| Box::pin(publish_atomic::publish(call)))],
    ),
    route(
        "/publish/{topic}",
        &[(Method::POST, |call| Box::pin(publish::publish(call)))],
    ),
    route(
        "/cloudevents",
        &[(Method::POST, |call| Box::pin(cloudevents::publish(call)))],
    ),
    route(
        "/import",
        &[(Method::POST, |call| Box::pin(bulk::import(call)))],
    ),
    route(
        "/replay",
        &[(Method::GET, |call| Box::pin(events::replay(call)))],
    ),
    route(
        "/export",
        &[(Method::GET, |call| Box::pin(export::export(call)))],
    ),
    route("/find", &[(Method::GET, |call| Box::pin(find::find(call)))]),
    route(
        "/latest-by-key",
        &[(Method::GET, |call| Box::pin(events::latest_by_key(call)))],
    ),
    route(
        "/snap/{topic}/{key}",
        &[(Method::GET, |call| Box::pin(snap::snap(call)))],
    ),
    route(
        "/list/{topic}",
        &[(Method::GET, |call| Box::pin(list::list(call)))],
    ),
    route(
        "/diff/{topic}",
        &[(Method::GET, |call| Box::pin(diff::diff(call)))],
    ),
    route("/sse", &[(Method::GET, |call| Box::pin(sse::follow(call)))]),
    route(
        "/topics",
        &[(Method::GET, |call| Box::pin(topics::list(call)))],
    ),
    route(
        "/topics/{topic}",
        &[
            (Method::GET, |call| Box::pin(topics::get(call))),
            (Method::PUT, |call| Box::pin(topics::put(call))),
            (Method::DELETE, |call| Box::pin(topics::delete(call))),
        ],
    ),
    route(
        "/topics/{topic}/purge",
        &[(Method::POST, |call| Box::pin(topics::purge(call)))],
    ),
    route(
        "/topics/{topic}/snapshot",
        &[(Method::POST, |call| Box::pin(topics::snapshot(call)))],
    ),
    route(
        "/schemas",
        &[(Method::GET, |call| Box::pin(schemas::list(call)))],
    ),
    route(
        "/schemas/{topic}",
        &[
            (Method::GET, |call| Box::pin(schemas::get(call))),
            (Method::POST, |call| Box::pin(schemas::register(call))),
            (Method::DELETE, |call| Box::pin(schemas::remove(call))),
        ],
    ),
    // Before the versions, which take whatever follows the topic.
    route(
        "/schemas/{topic}/check",
        &[(Method::POST, |call| Box::pin(schemas::check(call)))],
    ),
    route(
        "/schemas/{topic}/{version}",
        &[
            (Method::GET, |call| Box::pin(schemas::get_version(call))),
            (Method::DELETE, |call| {
                Box::pin(schemas::remove_version(call))
            }),
        ],
    ),
    route(
        "/groups",
        &[
            (Method::GET, |call| Box::pin(groups::list(call))),
            (Method::PATCH, |call| Box::pin(groups::change(call))),
            (Method::DELETE, |call| Box::pin(groups::remove(call))),
        ],
    ),
    route(
        "/groups/pause",
        &[(Method::POST, |call| Box::pin(groups::pause(call)))],
    ),
    route(
        "/groups/resume",
        &[(Method::POST, |call| Box::pin(groups::resume(call)))],
    ),
    route(
        "/groups/shadow",
        &[(Method::POST, |call| Box::pin(groups::shadow(call)))],
    ),
    route(
        "/cursors/undo",
        &[(Method::POST, |call| Box::pin(groups::undo_seek(call)))],
    ),
    route(
        "/cursors",
        &[
            (Method::GET, |call| Box::pin(groups::cursors(call))),
            (Method::POST, |call| Box::pin(groups::seek(call))),
        ],
    ),
    route("/lag", &[(Method::GET, |call| Box::pin(groups::lag(call)))]),
    route(
        "/explain",
        &[(Method::GET, |call| Box::pin(groups::explain(call)))],
    ),
    route(
        "/dlq",
        &[
            (Method::GET, |call| Box::pin(dead_letters::list(call))),
            (Method::DELETE, |call| Box::pin(dead_letters::remove(call))),
        ],
    ),
    route(
        "/dlq/redrive",
        &[(Method::POST, |call| Box::pin(redrive::redrive(call)))],
    ),
    route(
        "/schedules",
        &[(Method::GET, |call| Box::pin(schedules::list(call)))],
    ),
    route(
        "/schedules/{id}",
        &[(Method::DELETE, |call| Box::pin(schedules::remove(call)))],
    ),
    route(
        "/pull",
        &[(Method::POST, |call| Box::pin(pull::pull(call)))],
    ),
    route(
        "/ack",
        &[(Method::POST, |call| Box::pin(settle::ack(call)))],
    ),
    route(
        "/nack",
        &[(Method::POST, |call| Box::pin(settle::nack(call)))],
    ),
    route(
        "/modack",
        &[(Method::POST, |call| Box::pin(settle::modack(call)))],
    ),
    route(
        "/history",
        &[(Method::GET, |call| Box::pin(history::history(call)))],
    ),
    route(
        "/histogram",
        &[(Method::GET, |call| Box::pin(histogram::histogram(call)))],
    ),
    route(
        "/attention",
        &[(Method::GET, |call| Box::pin(attention::attention(call)))],
    ),
    route(
        "/causes",
        &[(Method::GET, |call| Box::pin(causes::causes(call)))],
    ),
    route(
        "/status",
        &[(Method::GET, |call| Box::pin(status::status(call)))],
    ),
    route(
        "/nodes",
        &[(Method::GET, |call| Box::pin(nodes::list(call)))],
    ),
    route(
        "/access",
        &[(Method::GET, |call| Box::pin(status::access(call)))],
    ),
    route(
        "/metrics",
        &[(Method::GET, |call| Box::pin(documents::metrics(call)))],
    ),
    route(
        "/openapi.json",
        &[(Method::GET, |call| Box::pin(documents::openapi(call)))],
    ),
    open(
        "/healthz",
        &[(Method::GET, |call| Box::pin(health::ready(call)))],
    ),
    open(
        "/livez",
        &[(Method::GET, |call| Box::pin(health::live(call)))],
    ),
    open(
        "/readyz",
        &[(Method::GET, |call| Box::pin(health::ready(call)))],
    ),
];

/// Answers one request of a connection.
pub(crate) async fn answer(connection: Arc<Connection>, request: Request) -> Response {
    let cors_origins = &connection.gateway.options.cors_origins;
    let origin = cors::allowed_origin(cors_origins, request.headers());
    let (uri, is_head) = (request.uri().clone(), request.method() == Method::HEAD);
    let answered = handle(&connection, request, origin.as_ref()).await;
    let mut response = answered.unwrap_or_else(|error| {
        connection.log_error(&error, uri.path());
        reply::error(error)
    });
    cors::mark(&mut response, cors_origins, origin);
    if is_head {
        return reply::without_body(response);
    }
    response
}

async fn handle(
    connection: &Arc<Connection>,
    request: Request,
    origin: Option<&HeaderValue>,
) -> Result<Response, ApiError> {
    connection.set_subject(None);
    check_sender(connection, &request)?;
    if node_link::is_upgrade(&request) {
        let (gateway, next) = (connection.gateway.clone(), &connection.next_session);
        return node_link::upgrade(gateway, next, request).await;
    }
    let path = request.uri().path();
    if path == "/ws" || path == "/" && session::is_upgrade(request.headers()) {
        let (gateway, peer) = (connection.gateway.clone(), connection.peer.clone());
        return session::upgrade(gateway, peer, &connection.next_session, request).await;
    }
    if let Some(response) = dashboard::serve(&request) {
        return Ok(response);
    }
    if origin.is_some() && cors::is_preflight(&request) {
        return Ok(cors::preflight(request.headers()));
    }
    dispatch(connection.clone(), request).await
}

/// Refuses requests that are addressed to another host, and those of foreign web pages that could change something.
fn check_sender(connection: &Connection, request: &Request) -> Result<(), ApiError> {
    let options = &connection.gateway.options;
    let host = origin::host(request.version(), request.uri(), request.headers())?;
    if connection.serves_local_names_only()
        && let Some(host) = &host
        && !origin::is_local(host, &options.allowed_hosts)
    {
        let message = format!(
            "unknown host {:?}; without authentication only loopback names and allowed_hosts are served",
            host.host()
        );
        return Err(ApiError::new(Code::Forbidden, message));
    }
    // A WebSocket can change something, though it begins with a GET.
    let is_reading = origin::is_safe(request.method()) && !session::is_upgrade(request.headers());
    if is_reading || origin::may_act(&options.cors_origins, host.as_ref(), request.headers()) {
        return Ok(());
    }
    let message = "cross-origin request; add the origin to cors_origins";
    Err(ApiError::new(Code::Forbidden, message))
}

async fn dispatch(connection: Arc<Connection>, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let body = RequestBody::new(body, &parts.headers);
    let served = serve(connection, parts, body.clone()).await;
    // The client sees the error only if what it still sends is read.
    let is_error = served
        .as_ref()
        .map_or(true, |response| !response.status().is_success());
    if is_error {
        body.linger();
    }
    served
}

async fn serve(
    connection: Arc<Connection>,
    parts: Parts,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let Some((route, names)) = find(parts.uri.path()) else {
        let message = "no such path; see /openapi.json";
        return Err(ApiError::new(Code::NotFound, message));
    };
    let method = match parts.method {
        Method::HEAD => &Method::GET,
        ref method => method,
    };
    let Some((_, handler)) = route.methods.iter().find(|(served, _)| served == method) else {
        return Ok(wrong_method(route));
    };
    let names = names.decoded();
    let (method, query) = (method.clone(), parts.uri.query().map(str::to_owned));
    let call = Call::new(connection, parts, body, names, route.is_open).await?;
    parameters::check(route.path, method.as_str(), query.as_deref())?;
    handler(call).await
}

/// The route of a path, and the names in it as they are written there.
fn find(path: &str) -> Option<(&'static Route, PathNames<'_>)> {
    ROUTES.iter().find_map(|route| {
        if let Some(before) = route.path.strip_suffix("{id}") {
            let key = path.strip_prefix(before).filter(|id| !id.is_empty())?;
            let names = PathNames {
                topic: None,
                key: Some(key),
            };
            return Some((route, names));
        }
        let Some((before, behind)) = route.path.split_once("{topic}") else {
            return (route.path == path).then(|| (route, PathNames::default()));
        };
        let rest = path.strip_prefix(before)?;
        let (topic, key) = match behind {
            "/{key}" | "/{version}" => rest
                .split_once('/')
                .map(|(topic, key)| (topic, Some(key)))?,
            behind => (rest.strip_suffix(behind)?, None),
        };
        let is_segment = !topic.is_empty() && !topic.contains('/');
        let topic = Some(topic);
        is_segment.then_some((route, PathNames { topic, key }))
    })
}

fn wrong_method(route: &Route) -> Response {
    let mut allowed: Vec<&str> = route
        .methods
        .iter()
        .map(|(method, _)| method.as_str())
        .collect();
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    let allowed = allowed.join(", ");
    let message = format!("method not allowed; use {allowed}");
    let mut response = reply::error(ApiError::new(Code::MethodNotAllowed, message));
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}
