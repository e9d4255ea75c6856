//! `nats://[user:password@]host:port,host:port/stream?replicas=3&sync=always&monitor=host:port&copy=FOLDER`

use crate::UrlOptions;
use async_nats::ServerAddr;
use std::path::PathBuf;

const DEFAULT_PORT: u16 = 4222;
const MAX_REPLICAS: usize = 5;

/// A store on JetStream, as its URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsUrl {
    scheme: &'static str,
    /// `user:password@`, a token and `@`, or nothing.
    credentials: String,
    /// `host:port` of each server.
    hosts: Vec<String>,
    /// The stream's name.
    pub stream: String,
    /// How many servers store each commit, where the stream has to be made.
    pub replicas: usize,
    /// Whether the URL says that the servers sync before they acknowledge.
    pub sync_always: bool,
    /// Monitoring ports of the servers, which tell whether they do.
    pub monitors: Vec<String>,
    /// Where the node's copy is.
    pub copy: Option<PathBuf>,
    /// What every shared store's URL may say.
    pub options: UrlOptions,
}

/// Why a text is no such URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid store URL: {cause}; expected nats://HOST:PORT[,HOST:PORT]/STREAM[?replicas=1&sync=always&monitor=HOST:PORT&copy=FOLDER&snapshot_bytes=256MiB&absent=60&wait=30]"
)]
pub struct InvalidUrl {
    cause: String,
}

impl NatsUrl {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Self, InvalidUrl> {
        let invalid = |cause: String| InvalidUrl { cause };
        let (scheme, rest) = match (url.strip_prefix("nats://"), url.strip_prefix("tls://")) {
            (Some(rest), _) => ("nats", rest),
            (_, Some(rest)) => ("tls", rest),
            _ => return Err(invalid("it does not begin with nats:// or tls://".into())),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, stream) = rest
            .rsplit_once('/')
            .ok_or_else(|| invalid("the stream's name is missing".into()))?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !(1..=64).contains(&stream.len()) || !stream.bytes().all(is_name) {
            let cause = format!("invalid stream name {stream:?}: 1 to 64 letters, digits, - and _");
            return Err(invalid(cause));
        }
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (format!("{credentials}@"), hosts),
            None => (String::new(), authority),
        };
        let hosts: Vec<String> = hosts.split(',').map(with_port).collect();
        let mut parsed = Self {
            scheme,
            credentials,
            hosts,
            stream: stream.into(),
            replicas: 1,
            sync_always: false,
            monitors: Vec::new(),
            copy: None,
            options: UrlOptions::default(),
        };
        for option in query.split('&').filter(|option| !option.is_empty()) {
            parsed.set(option).map_err(invalid)?;
        }
        parsed
            .servers()
            .map_err(|error| invalid(error.to_string()))?;
        Ok(parsed)
    }

    /// The addresses to connect to.
    pub(super) fn servers(&self) -> std::io::Result<Vec<ServerAddr>> {
        let address = |host: &String| {
            let url = format!("{}://{}{host}", self.scheme, self.credentials);
            url.parse()
        };
        self.hosts.iter().map(address).collect()
    }

    /// The URL as people may see it.
    pub fn without_credentials(&self) -> String {
        format!("{}://{}/{}", self.scheme, self.hosts.join(","), self.stream)
    }

    fn set(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| format!("option {option:?} has no value"))?;
        match name {
            "replicas" => match value.parse() {
                Ok(replicas @ 1..=MAX_REPLICAS) => self.replicas = replicas,
                _ => return Err(format!("replicas={value} is not from 1 to {MAX_REPLICAS}")),
            },
            "sync" => match value {
                "always" => self.sync_always = true,
                "default" => self.sync_always = false,
                _ => return Err(format!("sync={value} is neither always nor default")),
            },
            "monitor" => self.monitors = value.split(',').map(str::to_owned).collect(),
            "copy" if !value.is_empty() => self.copy = Some(value.into()),
            _ if self.options.set(name, value)? => {}
            _ => return Err(format!("unknown option {name:?}")),
        }
        Ok(())
    }
}

fn with_port(host: &str) -> String {
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port {
        host.into()
    } else {
        format!("{host}:{DEFAULT_PORT}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_url_can_say() {
        let url = NatsUrl::parse(
            "nats://me:secret@a:4401,b/orders?replicas=3&sync=always&monitor=a:8222,b:8222&copy=/var/copy",
        );
        let url = url.expect("a URL");
        assert_eq!(url.without_credentials(), "nats://a:4401,b:4222/orders");
        assert_eq!((url.replicas, url.sync_always), (3, true));
        assert_eq!(url.monitors, ["a:8222", "b:8222"]);
        assert_eq!(url.copy, Some("/var/copy".into()));
        assert_eq!(url.servers().expect("addresses").len(), 2);
    }

    #[test]
    fn little_is_enough() {
        let url = NatsUrl::parse("nats://127.0.0.1/prombus").expect("a URL");
        assert_eq!(url.without_credentials(), "nats://127.0.0.1:4222/prombus");
        assert_eq!(
            (url.replicas, url.sync_always, &url.copy),
            (1, false, &None)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (url, cause) in [
            ("http://a/b", "nats://"),
            ("nats://a", "stream's name"),
            ("nats://a/b.c", "b.c"),
            ("nats://a/b?replicas=9", "replicas=9"),
            ("nats://a/b?sync=never", "sync=never"),
            ("nats://a/b?copy=", "copy"),
            ("nats://a/b?speed=high", "speed"),
            ("nats://a/b?snapshot_bytes=9", "snapshot_bytes=9"),
            ("nats://a/b?replicas", "no value"),
        ] {
            let error = NatsUrl::parse(url).expect_err(url).to_string();
            assert!(error.contains(cause), "{url}: {error}");
        }
    }
}
