//! Addresses to listen on, as people write them: `127.0.0.1:8090`, `localhost:8090`, `:8090` for every interface, or
//! just a port of this machine.

use serde::{Deserialize, Deserializer};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};

/// Where one name leads; usually one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenAddresses(pub(crate) Vec<SocketAddr>);

/// Reads one, and looks its name up.
pub(crate) fn parse(text: &str) -> Result<ListenAddresses, String> {
    let text = text.trim();
    let invalid = |reason: &str| {
        format!(
            "invalid listen address {text:?}: {reason}; expected one like 127.0.0.1:8090, localhost:8090 or :8090"
        )
    };
    if let Ok(port) = text.parse::<u16>() {
        return Ok(ListenAddresses(vec![(Ipv4Addr::LOCALHOST, port).into()]));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(ListenAddresses(vec![address]));
    }
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| invalid("it has no port"))?;
    let port: u16 = port
        .parse()
        .map_err(|_| invalid("its port is not a number up to 65535"))?;
    match host {
        "" | "*" => Ok(ListenAddresses(vec![(Ipv4Addr::UNSPECIFIED, port).into()])),
        // One address, so that port 0 is one port.
        "localhost" => Ok(ListenAddresses(vec![(Ipv4Addr::LOCALHOST, port).into()])),
        host => {
            let found = (host, port).to_socket_addrs();
            let mut found: Vec<_> = found
                .map_err(|error| invalid(&error.to_string()))?
                .collect();
            found.sort_unstable();
            found.dedup();
            if found.is_empty() {
                return Err(invalid("it has no address"));
            }
            Ok(ListenAddresses(found))
        }
    }
}

/// A list of them, for the configuration.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Vec<SocketAddr>, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    let mut addresses = Vec::new();
    for text in texts {
        addresses.extend(parse(&text).map_err(serde::de::Error::custom)?.0);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, expected) in [
            ("127.0.0.1:8090", "127.0.0.1:8090"),
            ("localhost:8090", "127.0.0.1:8090"),
            ("[::1]:8090", "[::1]:8090"),
            (":8090", "0.0.0.0:8090"),
            ("8090", "127.0.0.1:8090"),
        ] {
            let addresses = parse(text).unwrap().0;
            assert_eq!(
                addresses,
                [expected.parse::<SocketAddr>().unwrap()],
                "{text}"
            );
        }
        for bad in [
            "",
            "localhost",
            "localhost:port",
            "localhost:70000",
            "http://localhost:1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
