//! What an acknowledged commit has survived. How many servers store it is known from the stream. Whether they sync before
//! they acknowledge is not told to clients; their monitoring ports tell, where the URL names them.

use super::NatsUrl;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PROBE_LIMIT: Duration = Duration::from_secs(2);
/// More than any server says about itself.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// Whether servers sync before they acknowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// All that were asked say so.
    Always,
    /// One that was asked does not.
    Later,
    /// Only the URL says so.
    Promised,
    Unknown,
}

/// The label and, where power loss can take an acknowledged commit, the warning.
pub(super) async fn describe(url: &NatsUrl, replicas: usize) -> (String, Option<String>) {
    let mut sync = match (url.monitors.is_empty(), url.sync_always) {
        (false, _) => Sync::Always,
        (true, true) => Sync::Promised,
        (true, false) => Sync::Unknown,
    };
    for monitor in &url.monitors {
        match timeout(PROBE_LIMIT, syncs_always(monitor)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => sync = Sync::Later,
            Ok(Err(_)) | Err(_) if sync == Sync::Always => sync = Sync::Unknown,
            Ok(Err(_)) | Err(_) => {}
        }
    }
    label(replicas, sync)
}

fn label(replicas: usize, sync: Sync) -> (String, Option<String>) {
    let stored = match replicas {
        1 => "stored by 1 server".to_owned(),
        _ => format!("stored by {} of {replicas} servers", replicas / 2 + 1),
    };
    let synced = match sync {
        Sync::Always => "and synced before it is acknowledged (their monitoring ports say so)",
        Sync::Promised => "and synced before it is acknowledged (as the URL says; not checked)",
        Sync::Later => "before it is acknowledged; they sync later (sync_interval is not always)",
        Sync::Unknown => {
            "before it is acknowledged; they sync every 2 minutes unless their sync_interval is always"
        }
    };
    let can_be_lost = matches!(sync, Sync::Later | Sync::Unknown);
    let warning = can_be_lost.then(|| {
        let servers = if replicas == 1 { "the server loses" } else { "most servers lose" };
        format!(
            "acknowledged commits can be lost when {servers} power; set sync_interval: always in the servers' jetstream \
             block, and sync=always or monitor=HOST:PORT in the store's URL"
        )
    });
    (format!("{stored} {synced}"), warning)
}

/// Asks a server's monitoring port.
async fn syncs_always(monitor: &str) -> io::Result<bool> {
    let mut stream = TcpStream::connect(monitor).await?;
    let request = format!("GET /varz HTTP/1.0\r\nHost: {monitor}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream
        .take(MAX_ANSWER_BYTES)
        .read_to_end(&mut answer)
        .await?;
    says_always(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

fn says_always(answer: &[u8]) -> Option<bool> {
    let answer = std::str::from_utf8(answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let said: serde_json::Value = serde_json::from_str(body).ok()?;
    let config = said.get("jetstream")?.get("config")?;
    Some(
        config
            .get("sync_always")
            .and_then(serde_json::Value::as_bool)
            .unwrap_or(false),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_promises_no_more_than_is_known() {
        let (words, warning) = label(3, Sync::Unknown);
        assert!(words.starts_with("stored by 2 of 3 servers"), "{words}");
        assert!(warning.is_some_and(|warning| warning.contains("most servers lose power")));
        let (words, warning) = label(1, Sync::Later);
        assert!(words.contains("they sync later"), "{words}");
        assert!(warning.is_some_and(|warning| warning.contains("the server loses power")));
        for sync in [Sync::Always, Sync::Promised] {
            let (words, warning) = label(5, sync);
            assert!(
                words.starts_with("stored by 3 of 5 servers and synced"),
                "{words}"
            );
            assert_eq!(warning, None);
        }
    }

    #[test]
    fn a_server_says_whether_it_syncs() {
        let said = |config: &str| {
            let answer =
                format!("HTTP/1.0 200 OK\r\n\r\n{{\"jetstream\":{{\"config\":{config}}}}}");
            says_always(answer.as_bytes())
        };
        assert_eq!(said("{\"sync_always\":true}"), Some(true));
        assert_eq!(said("{\"sync_interval\":120000000000}"), Some(false));
        assert_eq!(says_always(b"HTTP/1.0 200 OK\r\n\r\n{}"), None);
        assert_eq!(says_always(b"nonsense"), None);
    }
}
