//! The dashboard: files that were compiled from `web/` and are part of this program. The page itself is at `/` for
//! browsers and at `/ui`; what it loads is below a path that names its version, so that it may be cached for good.
//!
//! The files are the same for everybody and tell nothing about the server, so they need no token.

use super::gzip;
use super::message::{Body, Request, Response};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode, header};

include!(concat!(env!("OUT_DIR"), "/dashboard_files.rs"));

/// One file of the page.
struct Asset {
    /// Below `/ui/<version>/`.
    path: &'static str,
    content_type: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

/// Nothing from elsewhere, no inline script or style, no frames. Connections go to this server alone.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const FOR_GOOD: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const EACH_TIME: HeaderValue = HeaderValue::from_static("no-cache");

/// The reply, where the request is for the dashboard.
pub(super) fn serve(request: &Request) -> Option<Response> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let headers = request.headers();
    let is_page = match request.uri().path() {
        "/ui" | "/ui/" => true,
        "/" => takes_html(headers),
        _ => false,
    };
    if is_page {
        return Some(reply(&PAGE, headers, EACH_TIME));
    }
    let path = request.uri().path().strip_prefix("/ui/")?;
    let path = path.strip_prefix(VERSION)?.strip_prefix('/')?;
    let asset = ASSETS.iter().find(|asset| asset.path == path)?;
    Some(reply(asset, headers, FOR_GOOD))
}

fn reply(asset: &Asset, asked: &HeaderMap, caching: HeaderValue) -> Response {
    let text = |name| asked.get(name).and_then(|value| value.to_str().ok());
    let is_gzip = text(header::ACCEPT_ENCODING).is_some_and(gzip::is_accepted);
    let tag = if is_gzip {
        concat!("\"", env!("DASHBOARD_VERSION"), "-gzip\"")
    } else {
        concat!("\"", env!("DASHBOARD_VERSION"), "\"")
    };
    let has_it = text(header::IF_NONE_MATCH).is_some_and(|tags| tags.contains(tag));
    let body = match (has_it, is_gzip) {
        (true, _) => Body::empty(),
        (false, true) => Body::from(asset.gzip),
        (false, false) => Body::from(asset.plain),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    if is_gzip && !has_it {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    for (name, value) in [
        (header::CONTENT_TYPE, asset.content_type),
        (header::ETAG, tag),
        (header::VARY, "accept, accept-encoding"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    headers.insert(header::CACHE_CONTROL, caching);
    if has_it {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    response
}

/// Whether it is a browser that asks for a page. Programs that take anything get what they got before there was one.
fn takes_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().to_ascii_lowercase().starts_with("text/html"))
}
