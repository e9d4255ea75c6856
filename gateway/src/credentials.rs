//! The token of a request: in the header or, for clients that cannot set it, in the query.

use hyper::http::request::Parts;
use hyper::{HeaderMap, Uri, header};
use prombus_api::ParseError;
use prombus_api::http::Query;

/// The token of a request, where it has one.
pub(crate) fn token(headers: &HeaderMap, uri: &Uri) -> Result<Option<String>, ParseError> {
    if let Some(token) = bearer(headers) {
        return Ok(Some(token.to_owned()));
    }
    let query = Query::parse(uri.query().unwrap_or_default())?;
    Ok(query.get("token").map(str::to_owned))
}

/// The token of a request that was taken apart.
pub(crate) fn token_of(parts: &Parts) -> Result<Option<String>, ParseError> {
    token(&parts.headers, &parts.uri)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn shown(authorization: Option<&str>, uri: &str) -> Option<String> {
        let mut request = Request::builder().uri(uri);
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        token_of(&parts).expect("a query")
    }

    #[test]
    fn the_header_wins_over_the_query() {
        assert_eq!(shown(Some("Bearer a"), "/?token=b").as_deref(), Some("a"));
        assert_eq!(shown(Some("bearer  a "), "/").as_deref(), Some("a"));
        assert_eq!(
            shown(Some("Basic a"), "/?token=b%20c").as_deref(),
            Some("b c")
        );
        assert_eq!(shown(None, "/?tok=b"), None);
    }
}
