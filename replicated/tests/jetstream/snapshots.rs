//! Snapshots in JetStream: a node that starts after the stream was trimmed, and one that is killed.

use crate::failures::log;
use crate::nodes::{self, assert_equal, eventually, fill, ids, node_on};
use crate::servers::Servers;
use prombus_replicated::{FolderCopy, OpenCopyError, Options, ReplicatedStore, SharedLog};
use std::path::Path;
use std::time::Duration;

async fn start(servers: &Servers, options: &str, folder: &Path) -> ReplicatedStore {
    let log = log(servers, options).await;
    // What a start that was given up has under way on other threads may take a moment to end.
    let (copy, _) = loop {
        match FolderCopy::open(folder, 5) {
            Err(OpenCopyError::InUse(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
            opened => break opened.expect("a copy"),
        }
    };
    let options = Options {
        snapshot_bytes: 300_000,
        absent_after: Duration::from_secs(1),
        ..Options::default()
    };
    node_on(log, copy, options).await
}

async fn trimmed_and_joined(servers: &Servers, options: &str) {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let node = start(servers, options, folders[0].path()).await;
    fill(&node, 30).await;
    eventually("the stream is trimmed", async || {
        node.replication().first > 5
    })
    .await;
    fill(&node, 3).await;
    // Killed while it loads the snapshot, it begins again.
    for ms in [1, 20, 60, 120] {
        let starting = start(servers, options, folders[1].path());
        let _ = tokio::time::timeout(Duration::from_millis(ms), starting).await;
    }
    let other = start(servers, options, folders[1].path()).await;
    let bounds = log(servers, options).await.bounds().await.expect("bounds");
    assert!(bounds.first > 5, "{bounds:?}");
    assert_equal(&node, &other, 33).await;
    let snapshots = log(servers, options).await.snapshots().expect("snapshots");
    let listed = snapshots.list().await.expect("a list");
    assert!(listed.contains(&node.replication().snapshot), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_node_gets_everything_from_a_snapshot_and_the_tail() {
    trimmed_and_joined(&Servers::start(1, ""), "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_on_three_servers() {
    trimmed_and_joined(&Servers::start(3, ""), "replicas=3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_are_kept_listed_and_removed() {
    let servers = Servers::start(1, "");
    let log = log(&servers, "").await;
    nodes::snapshots_are_kept_listed_and_removed(log, &[1, 2, 0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_not_closed_goes_on_where_it_was() {
    let servers = Servers::start(1, "");
    let folder = tempfile::tempdir().expect("a folder");
    let node = start(&servers, "", folder.path()).await;
    fill(&node, 10).await;
    let (before, applied) = (ids(&node).await, node.replication().applied);
    node.abort();
    drop(node);
    // What the copy has is not needed from the stream any more.
    let log = log(&servers, "").await;
    log.trim(applied).await.expect("purged");
    let node = start(&servers, "", folder.path()).await;
    assert_eq!(ids(&node).await, before);
    fill(&node, 1).await;
}
