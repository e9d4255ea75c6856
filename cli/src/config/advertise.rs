//! The URL under which the other nodes of a shared store reach this one, where that is not the address it listens on:
//! behind a port mapping, in a container, or when it listens on every interface.

use crate::server_url;
use serde::{Deserialize, Deserializer};
use ureq::http::Uri;

/// The URL with its port and without a slash at its end.
fn parse(text: &str) -> Result<String, String> {
    let invalid = |reason: &str| {
        format!("invalid advertise URL: {reason}; expected one like http://10.0.0.5:8090")
    };
    let url = server_url::parse(text).map_err(|reason| format!("advertise: {reason}"))?;
    let uri: Uri = url.parse().map_err(|_| invalid("it cannot be parsed"))?;
    if uri.path() != "/" {
        return Err(invalid("nodes are linked at the root, so it takes no path"));
    }
    if uri.port().is_some() {
        return Ok(url);
    }
    let port = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    Ok(format!("{url}:{port}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(input)?;
    parse(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_url_has_a_port_and_no_path() {
        let parsed = |text: &str| parse(text).expect("a URL");
        assert_eq!(parsed("http://10.0.0.5:8090/"), "http://10.0.0.5:8090");
        assert_eq!(parsed("node-1"), "http://node-1:8090");
        assert_eq!(
            parsed("https://node-1.example"),
            "https://node-1.example:443"
        );
        assert_eq!(parsed("http://[fd00::5]"), "http://[fd00::5]:80");
        for text in [
            "http://node-1/bus",
            "ftp://node-1",
            "http://",
            "http://node-1:port",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
