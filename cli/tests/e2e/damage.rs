//! Segment files that are removed or swapped: `verify`, the server's log, `/readyz` and `/metrics` all say so, and no
//! file vanishes.

use crate::server::{Server, run};
use prombus_log::{Log, LogOptions, OsFiles};
use prombus_store::{Batch, Draft};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use tempfile::TempDir;

const EVENTS: usize = 200;

/// The folder of a server that was stopped, with several sealed segments.
pub(crate) fn stopped() -> (Arc<TempDir>, PathBuf) {
    let server = Server::start(&[]);
    assert_eq!(server.post("/publish/t", "0").0, 200);
    let folder = server.folder.clone();
    server.signal("TERM");
    assert!(server.wait().success());
    let data = folder.path().join("prombus-data");
    let files = Arc::new(OsFiles::open(&data).expect("the folder"));
    let options = LogOptions {
        segment_bytes: 4096,
        threads: false,
        ..LogOptions::default()
    };
    let (log, report) = Log::open(files, options).expect("it opens");
    assert!(report.damage.is_empty(), "{report:?}");
    for _ in 0..EVENTS {
        let mut batch = Batch::new();
        let draft = Draft {
            payload: "1",
            ..Draft::default()
        };
        batch.publish(&"t".into(), &draft);
        let commit = log.append(&batch);
        log.commit_now();
        commit.wait().expect("a commit");
    }
    log.maintain().expect("maintenance");
    log.close().expect("it closes");
    (folder, data)
}

pub(crate) fn names(data: &Path, suffix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(data).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(suffix))
        .collect();
    names.sort();
    names
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Everything that shows damage shows this.
fn check_shown(folder: &Arc<TempDir>, kind: &str) {
    let checked = run(folder.path(), &["verify"]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    let text = stdout(&checked);
    assert!(
        text.contains(kind) && text.contains("lost t seq "),
        "{text}"
    );

    let server = Server::start_in(folder.clone(), &[]);
    let (status, ready) = server.get("/readyz");
    assert_eq!(status, 200, "{ready}");
    assert!(ready.contains(kind) && !ready.contains("t seq"), "{ready}");
    let (_, metrics) = server.get("/metrics");
    let count = metrics
        .lines()
        .find_map(|line| line.strip_prefix("store_damage "));
    assert!(count.is_some_and(|count| count != "0"), "{metrics}");
    let in_use = run(folder.path(), &["verify"]);
    assert!(!in_use.status.success());
    assert!(String::from_utf8_lossy(&in_use.stderr).contains("is in use"));
    let log = server.logged();
    assert!(log.contains(kind) && log.contains("lost t seq "), "{log}");
}

#[test]
fn a_segment_that_is_removed_with_its_index_is_missed() {
    let (folder, data) = stopped();
    let whole = run(folder.path(), &["verify"]);
    assert!(whole.status.success(), "{whole:?}");
    let segments = names(&data, ".seg");
    let middle = &segments[segments.len() / 2];
    std::fs::remove_file(data.join(middle)).expect("a segment");
    std::fs::remove_file(data.join(middle.replace(".seg", ".idx"))).expect("an index");
    check_shown(&folder, "segment missing");
}

#[test]
fn segments_that_are_swapped_are_kept_and_named() {
    let (folder, data) = stopped();
    let segments = names(&data, ".seg");
    let (first, last) = (
        data.join(&segments[0]),
        data.join(&segments[segments.len() - 1]),
    );
    let [one, other] = [&first, &last].map(|path| std::fs::read(path).expect("a segment"));
    std::fs::write(&first, &other).expect("it is written");
    std::fs::write(&last, &one).expect("it is written");
    check_shown(&folder, "file holds another segment");
    // All but the two are where they were, and those two are kept.
    let left = names(&data, ".seg");
    assert!(
        segments[1..segments.len() - 1]
            .iter()
            .all(|name| left.contains(name))
    );
    let kept = names(&data, ".seg.kept");
    let kept: Vec<Vec<u8>> = kept
        .iter()
        .map(|name| std::fs::read(data.join(name)).expect("a kept file"))
        .collect();
    assert!(kept.contains(&one) && kept.contains(&other));
}

#[test]
fn a_folder_without_a_log_is_not_intact() {
    let folder = TempDir::new().expect("a folder");
    let empty = run(folder.path(), &["verify", "."]);
    assert!(!empty.status.success(), "{empty:?}");
    assert!(String::from_utf8_lossy(&empty.stderr).contains("no log"));
    assert_eq!(names(folder.path(), "").len(), 0);
    std::fs::write(folder.path().join("letter.txt"), "dear").expect("a file");
    let other = run(folder.path(), &["verify", "."]);
    assert!(!other.status.success(), "{other:?}");
}
