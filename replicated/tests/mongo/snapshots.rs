//! Snapshots in MongoDB: a node that starts after the collection was trimmed, and a server that dies while one is made.

use crate::nodes::{self, assert_equal, eventually, fill, node_on};
use crate::server::Server;
use prombus_replicated::mongo::MongoLog;
use prombus_replicated::{FolderCopy, Options, ReplicatedStore, SharedLog};
use std::path::Path;
use std::time::Duration;

async fn start(url: &str, folder: &Path) -> ReplicatedStore {
    let log = MongoLog::open(url).await.expect("a log");
    let (copy, _) = FolderCopy::open(folder, log.description().log_id).expect("a copy");
    let options = Options {
        patience: Duration::from_secs(30),
        snapshot_bytes: 200_000,
        absent_after: Duration::from_secs(1),
        ..Options::default()
    };
    node_on(log, copy, options).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_gets_everything_from_a_snapshot_and_the_tail() {
    let server = Server::start();
    let url = server.fresh_url();
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let node = start(&url, folders[0].path()).await;
    fill(&node, 15).await;
    eventually("the log is trimmed", async || node.replication().first > 3).await;
    fill(&node, 2).await;
    let other = start(&url, folders[1].path()).await;
    let log = MongoLog::open(&url).await.expect("a log");
    let bounds = log.bounds().await.expect("bounds");
    assert!(bounds.first > 3, "{bounds:?}");
    assert_equal(&node, &other, 17).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_are_kept_listed_and_removed() {
    let server = Server::start();
    let log = MongoLog::open(&server.fresh_url()).await.expect("a log");
    nodes::snapshots_are_kept_listed_and_removed(log, &[1, 2, 2, 0]).await;
}
