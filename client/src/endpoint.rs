//! Where a server is: its URL, read and put into the form that the socket needs.

use crate::error::BadUrl;
use http::Uri;
use std::borrow::Cow;

/// A server's address.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    /// With the scheme `ws` or `wss`.
    pub(crate) uri: Uri,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
}

impl Endpoint {
    /// Reads `ws://`, `wss://`, `http://` (as `ws`) and `https://` (as `wss`); without a path it is `/ws`.
    pub(crate) fn parse(url: &str) -> Result<Self, BadUrl> {
        let bad = |why: &str| BadUrl {
            url: without_secrets(url),
            why: why.to_owned(),
        };
        // As people type it: `localhost:8090`.
        let full = if url.contains("://") {
            Cow::Borrowed(url)
        } else {
            Cow::Owned(format!("ws://{url}"))
        };
        let uri: Uri = full.parse().map_err(|_| bad("it is not a URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("ws" | "http") => false,
            Some("wss" | "https") => true,
            Some(_) => return Err(bad("the scheme has to be ws, wss, http or https")),
            None => return Err(bad("expected ws:// or wss://")),
        };
        if is_tls && cfg!(not(feature = "tls")) {
            return Err(bad("wss needs the feature `tls` of prombus-client"));
        }
        let authority = uri.authority().ok_or_else(|| bad("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("give the token with ClientOptions, not in the URL"));
        }
        let host = authority.host();
        if host.is_empty() {
            return Err(bad("it has no host"));
        }
        let port = authority
            .port_u16()
            .unwrap_or(if is_tls { 443 } else { 80 });
        let path = match uri.path_and_query().map(|path| path.as_str()) {
            None | Some("/") => "/ws",
            Some(path) => path,
        };
        let scheme = if is_tls { "wss" } else { "ws" };
        let normal = Uri::builder()
            .scheme(scheme)
            .authority(authority.clone())
            .path_and_query(path)
            .build()
            .map_err(|_| bad("it is not a URL"))?;
        Ok(Self {
            host: host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            port,
            is_tls,
            uri: normal,
        })
    }

    /// For messages: the address without what may be secret in it.
    pub(crate) fn name(&self) -> String {
        without_secrets(&self.uri.to_string())
    }
}

/// A URL without its query and without a password, for messages and logs.
fn without_secrets(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    match (plain.find("://"), plain.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => {
            format!("{}{}", &plain[..scheme + 3], &plain[at + 1..])
        }
        _ => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_put_into_one_form() {
        for (url, normal, host, port) in [
            (
                "ws://localhost:8090",
                "ws://localhost:8090/ws",
                "localhost",
                8090,
            ),
            (
                "http://localhost:8090/",
                "ws://localhost:8090/ws",
                "localhost",
                8090,
            ),
            (
                "localhost:8090",
                "ws://localhost:8090/ws",
                "localhost",
                8090,
            ),
            ("ws://[::1]:8090/ws", "ws://[::1]:8090/ws", "::1", 8090),
            (
                "ws://bus.example/path?x=1",
                "ws://bus.example/path?x=1",
                "bus.example",
                80,
            ),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(endpoint.uri.to_string(), normal);
            assert_eq!((endpoint.host.as_str(), endpoint.port), (host, port));
            assert!(!endpoint.is_tls);
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn https_is_wss() {
        for url in ["wss://bus.example", "https://bus.example"] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(endpoint.uri.to_string(), "wss://bus.example/ws");
            assert_eq!((endpoint.port, endpoint.is_tls), (443, true));
        }
    }

    #[test]
    fn what_is_no_url_is_refused_without_showing_secrets() {
        for url in [
            "",
            "ftp://host",
            "ws://",
            "ws://user:secret@host/?token=secret",
        ] {
            let error = Endpoint::parse(url).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
            assert!(!error.why.is_empty());
        }
        let endpoint = Endpoint::parse("ws://host/ws?token=secret").unwrap();
        assert_eq!(endpoint.name(), "ws://host/ws");
    }
}
