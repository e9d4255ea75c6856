//! Which host names this server answers to, and which web pages may act on it.
//!
//! A browser lets every page send requests to every server, also to one on the same machine. Two checks keep foreign
//! pages out: a request that changes something must not come from a page of another origin, and a server that asks for
//! no token answers on the loopback interface to loopback names only, so that a page cannot reach it by pointing its
//! own name at 127.0.0.1 (DNS rebinding).

use crate::api_error::ApiError;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Method, Uri, Version, header};
use prombus_api::Code;
use std::net::IpAddr;

/// The name a request is addressed to: that of its target where the target has one, else that of its `Host`. `None`
/// only for HTTP/1.0, which needs neither. A `Host` that is missing, repeated or malformed is an error (RFC 9112, 3.2).
pub(crate) fn host(
    version: Version,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<Authority>, ApiError> {
    let bad = |reason: &str| ApiError::new(Code::BadFrame, reason);
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return Err(bad("repeated Host header")),
        (None, _) if version >= Version::HTTP_11 => {
            return Err(bad("missing Host header"));
        }
        (None, _) => None,
        (Some(host), None) => {
            let authority = Authority::try_from(host.as_bytes()).ok();
            let authority = authority.filter(|host| !host.as_str().contains('@'));
            Some(authority.ok_or_else(|| bad("invalid Host header"))?)
        }
    };
    Ok(uri.authority().cloned().or(host))
}

/// Whether a server without authentication that listens on loopback answers to this name.
pub(crate) fn is_local(host: &Authority, allowed_hosts: &[String]) -> bool {
    let name = host.host();
    let name = name.strip_suffix('.').unwrap_or(name);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = address
        .parse::<IpAddr>()
        .is_ok_and(|address| address.to_canonical().is_loopback());
    let is_allowed = |allowed: &String| {
        allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(host.as_str())
    };
    is_loopback
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || allowed_hosts.iter().any(is_allowed)
}

/// Whether a request that may change something comes from no web page, from one of this server, or from one of an
/// origin in `cors_origins`. Browsers send `Origin` with such requests; where one is left out, `Sec-Fetch-Site` tells.
pub(crate) fn may_act(
    cors_origins: &[String],
    host: Option<&Authority>,
    headers: &HeaderMap,
) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        return matches!(site, None | Some(b"same-origin" | b"none"))
            || cors_origins.iter().any(|named| named == "*");
    };
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let origin_host = origin.split_once("://").map(|(_, host)| host);
    let is_own = origin_host
        .zip(host)
        .is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host.as_str()));
    let is_named = |named: &String| named == "*" || named.eq_ignore_ascii_case(origin);
    is_own || cors_origins.iter().any(is_named)
}

/// Whether a request only reads.
pub(crate) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).try_into().unwrap(), value.parse().unwrap()));
        pairs.collect()
    }

    #[test]
    fn local_names_are_loopback_addresses_and_what_is_allowed() {
        let allowed = ["bus.internal".to_owned(), "proxy:8443".to_owned()];
        for (host, is_local_name) in [
            ("localhost", true),
            ("LocalHost:8090", true),
            ("localhost.", true),
            ("bus.localhost:1", true),
            ("127.0.0.1:8090", true),
            ("127.9.9.9", true),
            ("[::1]:8090", true),
            ("[::ffff:127.0.0.1]", true),
            ("BUS.internal:99", true),
            ("proxy:8443", true),
            ("proxy:8444", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("192.168.0.1", false),
            ("0.0.0.0", false),
        ] {
            let authority = Authority::try_from(host).unwrap();
            assert_eq!(is_local(&authority, &allowed), is_local_name, "{host}");
        }
    }

    #[test]
    fn the_target_names_the_host_before_the_header_does() {
        let uri: Uri = "http://a.example/x".parse().unwrap();
        let named = host(Version::HTTP_11, &uri, &headers(&[("host", "b.example")]));
        assert_eq!(named.unwrap().unwrap(), "a.example");
        let path: Uri = "/x".parse().unwrap();
        assert_eq!(host(Version::HTTP_10, &path, &headers(&[])), Ok(None));
        for bad in [
            headers(&[]),
            headers(&[("host", "")]),
            headers(&[("host", "a b")]),
            headers(&[("host", "user@a.example")]),
            headers(&[("host", "a.example"), ("host", "a.example")]),
        ] {
            assert!(host(Version::HTTP_11, &path, &bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_own_and_named_pages_may_act() {
        let named = ["https://ours.example".to_owned()];
        let own = Authority::from_static("bus:8090");
        for (sent, may) in [
            (&[][..], true),
            (&[("origin", "http://bus:8090")], true),
            (&[("origin", "https://Ours.example")], true),
            (&[("origin", "http://bus:8091")], false),
            (&[("origin", "https://evil.example")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
        ] {
            assert_eq!(may_act(&named, Some(&own), &headers(sent)), may, "{sent:?}");
        }
        let foreign = headers(&[("sec-fetch-site", "cross-site")]);
        assert!(may_act(&["*".to_owned()], Some(&own), &foreign));
    }
}
