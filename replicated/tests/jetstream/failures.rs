//! Servers that are killed, paused and started again while nodes publish.

use crate::nodes::{
    a_commit_goes_in_parts, an_outage_is_noticed_and_passes, node, nothing_acknowledged_is_lost,
};
use crate::servers::Servers;
use prombus_replicated::Options;
use prombus_replicated::nats::{JetStreamLog, NatsUrl};
use std::time::Duration;

pub(crate) async fn log(servers: &Servers, options: &str) -> JetStreamLog {
    let url = format!("nats://{}/orders?{options}", servers.hosts());
    let url = NatsUrl::parse(&url).expect("a URL");
    JetStreamLog::open(&url, 5).await.expect("a stream")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_servers_are_killed_and_paused() {
    let mut servers = Servers::start(3, "");
    let one = node(log(&servers, "replicas=3").await).await;
    let other = node(log(&servers, "replicas=3").await).await;
    nothing_acknowledged_is_lost([one, other], 3, async |at| {
        tokio::time::sleep(Duration::from_millis(300)).await;
        if at % 2 == 0 {
            servers.kill(at);
            tokio::time::sleep(Duration::from_millis(500)).await;
            servers.restart(at);
        } else {
            servers.signal(at, "STOP");
            tokio::time::sleep(Duration::from_millis(2500)).await;
            servers.signal(at, "CONT");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_noticed_and_passes_by_itself() {
    let mut servers = Servers::start(1, "");
    let node = node(log(&servers, "").await).await;
    let kill = |servers: &mut Servers| servers.kill(0);
    let restart = |servers: &mut Servers| servers.restart(0);
    let error = an_outage_is_noticed_and_passes(node, &mut servers, kill, restart).await;
    assert!(error.to_string().contains("unknown whether"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_beyond_max_payload_goes_in_parts_and_survives_a_restart() {
    let mut servers = Servers::start(1, "");
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..3 {
        let (log, options) = (log(&servers, "").await, Options::default());
        a_commit_goes_in_parts(log, folder.path(), options, 3 << 20, round).await;
        servers.kill(0);
        servers.restart(0);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
