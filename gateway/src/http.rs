//! HTTP: which path is answered by what. The table below is all there is; what is common to all routes (tokens, CORS,
//! HEAD, errors) happens here, so that a route cannot forget it.

mod body;
mod bulk;
mod call;
mod connection;
mod cors;
mod dead_letters;
mod documents;
mod events;
mod export;
mod groups;
mod gzip;
mod health;
mod lines;
mod list;
mod publish;
mod pull;
mod redrive;
mod reply;
mod settle;
mod snap;
mod sse;
mod stream;
#[cfg(test)]
mod tests;
mod topics;

pub(crate) use pull::Pullers;
pub(crate) use reply::denied;

use crate::denied::Denied;
use crate::gateway::Gateway;
use crate::origin;
use crate::session;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use call::{Answer, Call, PathNames};
use connection::Connection;
use prombus_api::Code;
use std::sync::Arc;

/// A path and what answers it.
struct Route {
    /// As the OpenAPI document spells it; one segment may be `{topic}`, and `{key}` behind it is all that follows.
    path: &'static str,
    /// Whether it answers without a token.
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

/// Every route. A GET answers HEAD too.
const ROUTES: &[Route] = &[
    route(
        "/publish/{topic}",
        &[(Method::POST, |call| Box::pin(publish::publish(call)))],
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
        "/groups",
        &[
            (Method::GET, |call| Box::pin(groups::list(call))),
            (Method::PATCH, |call| Box::pin(groups::change(call))),
            (Method::DELETE, |call| Box::pin(groups::remove(call))),
        ],
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

/// What answers the requests of one connection.
pub(crate) fn routes(gateway: Arc<Gateway>, listens_on_loopback: bool) -> Router {
    let connection = Arc::new(Connection::new(gateway, listens_on_loopback));
    Router::new().fallback(answer).with_state(connection)
}

async fn answer(State(connection): State<Arc<Connection>>, request: Request) -> Response {
    let gateway = connection.gateway.clone();
    if let Err(why) = check_sender(&connection, &request) {
        gateway.note(&why);
        return reply::denied(why);
    }
    let path = request.uri().path();
    if path == "/ws" || path == "/" && session::is_upgrade(request.headers()) {
        return session::upgrade(gateway, request).await;
    }
    let origin = cors::allowed_origin(&gateway.options.cors_origins, request.headers());
    if let Some(origin) = &origin
        && cors::is_preflight(&request)
    {
        return cors::preflight(origin, request.headers());
    }
    let is_head = request.method() == Method::HEAD;
    let answered = dispatch(connection, request).await;
    let mut response = answered.unwrap_or_else(|why| {
        gateway.note(&why);
        reply::denied(why)
    });
    if let Some(origin) = origin {
        cors::allow(&mut response, origin);
    }
    match is_head {
        true => reply::without_body(response),
        false => response,
    }
}

/// Refuses requests that are addressed to another host, and those of foreign web pages that could change something.
fn check_sender(connection: &Connection, request: &Request) -> Result<(), Denied> {
    let options = &connection.gateway.options;
    let host = origin::host(request.version(), request.uri(), request.headers())?;
    if connection.serves_local_names_only()
        && let Some(host) = &host
        && !origin::is_local(host, &options.allowed_hosts)
    {
        let why = format!(
            "host {:?} is not served without authentication; add it to allowed_hosts",
            host.host()
        );
        return Err(Denied::new(Code::Forbidden, why));
    }
    // A WebSocket can change something, though it begins with a GET.
    let is_reading = origin::is_safe(request.method()) && !session::is_upgrade(request.headers());
    if is_reading || origin::may_act(&options.cors_origins, host.as_ref(), request.headers()) {
        return Ok(());
    }
    let why =
        "pages of this origin may not change anything here; cors_origins names those that may";
    Err(Denied::new(Code::Forbidden, why))
}

async fn dispatch(connection: Arc<Connection>, request: Request) -> Result<Response, Denied> {
    let path = request.uri().path();
    let Some((route, names)) = find(path) else {
        return Err(Denied::new(
            Code::NotFound,
            "there is nothing at this path; /openapi.json lists what there is",
        ));
    };
    let asked = match *request.method() {
        Method::HEAD => Method::GET,
        ref method => method.clone(),
    };
    let handler = route.methods.iter().find(|(method, _)| *method == asked);
    let Some((_, handler)) = handler else {
        return Ok(wrong_method(route));
    };
    let names = names.decoded();
    let (parts, body) = request.into_parts();
    let call = Call::new(connection, parts, body, names, route.is_open).await?;
    handler(call).await
}

/// The route of a path, and the names in it as they are written there.
fn find(path: &str) -> Option<(&'static Route, PathNames<'_>)> {
    ROUTES.iter().find_map(|route| {
        let Some((before, behind)) = route.path.split_once("{topic}") else {
            return (route.path == path).then(|| (route, PathNames::default()));
        };
        let rest = path.strip_prefix(before)?;
        let (topic, key) = match behind {
            "/{key}" => rest
                .split_once('/')
                .map(|(topic, key)| (topic, Some(key)))?,
            behind => (rest.strip_suffix(behind)?, None),
        };
        let is_segment = !topic.is_empty() && !topic.contains('/');
        let topic = Some(topic);
        is_segment.then_some((route, PathNames { topic, key }))
    })
}

fn wrong_method(route: &Route) -> Response<Body> {
    let mut allowed: Vec<&str> = route
        .methods
        .iter()
        .map(|(method, _)| method.as_str())
        .collect();
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    let allowed = allowed.join(", ");
    let why = format!("this path takes {allowed}");
    let mut response = reply::denied(Denied::new(Code::MethodNotAllowed, why));
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}
