//! Addresses of servers as people type them: `localhost:8090`, `http://…`, `ws://…` and their TLS forms.

use ureq::http::Uri;

/// Where a server is by default.
pub(crate) const DEFAULT: &str = "http://127.0.0.1:8090";
const DEFAULT_PORT: u16 = 8090;

/// The address as an HTTP URL without a slash at its end.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let invalid = |reason: &str| {
        format!(
            "invalid server URL: {reason}; expected one like localhost:8090 or https://bus.example"
        )
    };
    let text = text.trim();
    let (scheme, rest) = match text.split_once("://") {
        Some(("http" | "ws", rest)) => ("http", rest),
        Some(("https" | "wss", rest)) => ("https", rest),
        Some((other, _)) => return Err(invalid(&format!("unknown scheme {other:?}"))),
        None => ("http", text),
    };
    let has_scheme = text.contains("://");
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix("/ws").unwrap_or(rest);
    let uri: Uri = format!("{scheme}://{rest}")
        .parse()
        .map_err(|_| invalid("it cannot be parsed"))?;
    let authority = uri.authority().ok_or_else(|| invalid("it has no host"))?;
    if authority.as_str().contains('@') {
        return Err(invalid("it has a user name; pass --token instead"));
    }
    if authority.host().is_empty() {
        return Err(invalid("it has no host"));
    }
    if authority.as_str() != authority.host() && authority.port_u16().is_none() {
        return Err(invalid("its port is not a number"));
    }
    if uri.query().is_some() {
        return Err(invalid("it has a query"));
    }
    let url = format!("{scheme}://{rest}");
    // A bare name means the port that servers listen on by default, and not that of web servers.
    if !has_scheme && authority.port().is_none() && uri.path() == "/" {
        return Ok(format!("{url}:{DEFAULT_PORT}"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_an_address_is_the_same_server() {
        for text in [
            "localhost",
            "localhost:8090",
            "localhost:8090/",
            "http://localhost:8090",
            "ws://localhost:8090",
            "ws://localhost:8090/ws",
            " http://localhost:8090/ ",
        ] {
            assert_eq!(
                parse(text).as_deref(),
                Ok("http://localhost:8090"),
                "{text}"
            );
        }
        assert_eq!(
            parse("wss://bus.example").as_deref(),
            Ok("https://bus.example")
        );
        assert_eq!(parse("[::1]:9000").as_deref(), Ok("http://[::1]:9000"));
        assert_eq!(parse("https://h/bus/").as_deref(), Ok("https://h/bus"));
    }

    #[test]
    fn what_is_no_address_says_so() {
        for bad in [
            "",
            "ftp://host",
            "http://",
            "user:pw@host:1",
            "http://h?x=1",
            "a b",
            "http://h:port",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
