//! A server on a disk that is full to the brim, and then is not. The disk is a small file system in memory; where none
//! can be mounted the test says so and does nothing.

use crate::server::Server;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const DISK_BYTES: &str = "size=40m";
/// How often something is tried before the test gives up, a tenth of a second apart.
const MOST_TRIES: usize = 300;

/// A file system of its own, gone with the test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    #[allow(clippy::print_stdout, reason = "the test says why it does nothing")]
    fn mount(at: PathBuf) -> Option<Self> {
        std::fs::create_dir(&at).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", DISK_BYTES, "none"])
            .arg(&at)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                println!("skipped: no file system can be mounted here: {why}");
                None
            }
            Err(error) => {
                println!("skipped: mount does not run here: {error}");
                None
            }
        }
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let options = File::options()
            .create(true)
            .append(true)
            .open(self.ballast());
        let mut ballast = options.expect("a file");
        for bytes in [1 << 20, 4096, 1] {
            while ballast.write_all(&vec![1; bytes]).is_ok() {}
        }
    }

    fn empty(&self) {
        std::fs::remove_file(self.ballast()).expect("it is removed");
    }

    fn ballast(&self) -> PathBuf {
        // A log's folder may hold folders of others.
        let folder = self.0.join("other");
        std::fs::create_dir_all(&folder).expect("a folder");
        folder.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server may still be on its way out.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Publishes until one is refused; says how many were not.
fn publish_until_refused(server: &Server, payload: &str) -> usize {
    for stored in 0..MOST_TRIES {
        let (status, body) = server.post("/publish/t", payload);
        if status != 200 {
            assert!(body.contains("publish_failed"), "{status} {body}");
            return stored;
        }
    }
    panic!("the disk never fills");
}

#[allow(
    clippy::disallowed_methods,
    reason = "another process is waited for, which tells nobody when it is ready"
)]
fn try_until(mut is_done: impl FnMut() -> bool) {
    for _ in 0..MOST_TRIES {
        if is_done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it does not come to that");
}

fn count(server: &Server) -> usize {
    let (status, body) = server.get("/export?topic=t&ndjson=1");
    assert_eq!(status, 200, "{body}");
    body.lines().count()
}

#[test]
fn a_full_disk_is_told_and_recovered_from() {
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let Some(disk) = SmallDisk::mount(folder.path().join("prombus-data")) else {
        return;
    };
    let server = Server::start_in(folder.clone(), &[]);
    let payload = format!("{:?}", "x".repeat(300_000));
    assert_eq!(server.post("/publish/other", "1").0, 200);
    assert_eq!(server.post("/publish/t", &payload).0, 200);
    disk.fill();
    // What was taken ahead on the disk is given back once, so it takes a while.
    let mut stored = 1;
    try_until(|| {
        stored += publish_until_refused(&server, &payload);
        let (status, body) = server.get("/readyz");
        status == 503 && body.contains("the disk is full")
    });
    assert_eq!(count(&server), stored, "reading goes on");
    let removed = server.command(&["topic", "rm", "other", "--yes"]);
    assert!(removed.status.success(), "{removed:?}");

    disk.empty();
    try_until(|| server.post("/publish/t", &payload).0 == 200);
    stored += 1;
    assert_eq!(server.get("/readyz").0, 200);
    assert_eq!(count(&server), stored);

    disk.fill();
    try_until(|| {
        stored += publish_until_refused(&server, &payload);
        server.get("/readyz").0 == 503
    });
    let folder = server.kill();
    disk.fill();
    let server = Server::start_in(folder, &[]);
    let (status, body) = server.get("/readyz");
    assert_eq!(status, 503, "{body}");
    assert_eq!(count(&server), stored, "what is there can be read");
    let (_, refused) = server.post("/publish/t", "1");
    assert!(refused.contains("publish_failed"), "{refused}");
    disk.empty();
    try_until(|| server.post("/publish/t", "1").0 == 200);
    assert_eq!(server.get("/readyz").0, 200);
    assert_eq!(count(&server), stored + 1);
    assert!(Path::new(&disk.0).join("reserve").exists());
}
