//! The server is killed and started again while nodes publish.

use crate::nodes::{
    a_commit_goes_in_parts, an_outage_is_noticed_and_passes, node, nothing_acknowledged_is_lost,
};
use crate::server::Server;
use prombus_replicated::Options;
use prombus_replicated::mongo::MongoLog;
use std::time::Duration;

async fn log(url: &str) -> MongoLog {
    MongoLog::open(url).await.expect("a log")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let mut server = Server::start_stand_in();
    let url = server.fresh_url();
    let nodes = [node(log(&url).await).await, node(log(&url).await).await];
    nothing_acknowledged_is_lost(nodes, 2, async |_| {
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.kill();
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.restart();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_noticed_and_passes_by_itself() {
    let mut server = Server::start_stand_in();
    let node = node(log(&server.fresh_url()).await).await;
    an_outage_is_noticed_and_passes(node, &mut server, Server::kill, Server::restart).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_beyond_a_document_goes_in_parts_and_survives_a_restart() {
    let server = Server::start();
    let url = server.fresh_url();
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..2 {
        let options = Options {
            patience: Duration::from_secs(30),
            ..Options::default()
        };
        a_commit_goes_in_parts(log(&url).await, folder.path(), options, 9 << 20, round).await;
    }
}
