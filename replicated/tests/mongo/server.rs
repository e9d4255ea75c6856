//! A server that speaks MongoDB's protocol, on a free port of this machine, stopped with its handle: PyPI's `secantusdb`,
//! which is installed into the target folder once, or the real one at `PROMBUS_TEST_MONGODB_URL`. The stand-in has
//! transactions and change streams, and is no proof of how MongoDB itself behaves, least of all in a failover.

#![allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "it waits for a real process, and each program that includes it uses a part"
)]

use crate::ports::free_ports;
use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

const VERSION: &str = "0.7.0b3";
/// How long the server may take to be ready, on a machine that does much else.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A server, and names for databases in it.
pub(crate) struct Server {
    process: Option<Process>,
    /// What comes before and behind the database's name in a URL.
    url: (String, String),
    databases: AtomicU64,
}

struct Process {
    port: u16,
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl Server {
    /// Starts the stand-in, or takes the server that the environment names.
    pub(crate) fn start() -> Self {
        match std::env::var("PROMBUS_TEST_MONGODB_URL") {
            Ok(url) => Self {
                process: None,
                url: around_database(&url),
                databases: AtomicU64::new(0),
            },
            Err(_) => Self::start_stand_in(),
        }
    }

    /// Starts the stand-in whatever the environment says, for tests that kill it.
    pub(crate) fn start_stand_in() -> Self {
        let port = free_ports(1)[0];
        let before = format!("mongodb://127.0.0.1:{port}/");
        let mut server = Self {
            process: Some(Process {
                port,
                folder: tempfile::tempdir().expect("a folder"),
                child: None,
            }),
            url: (before, "?directConnection=true".to_owned()),
            databases: AtomicU64::new(0),
        };
        server.restart();
        server
    }

    /// The URL of a database that nothing was written to yet.
    pub(crate) fn fresh_url(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.expect("a clock").as_micros();
        self.url_of(&format!("prombus_test_{now:x}_{number}"))
    }

    /// The URL of a database.
    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("{}{database}{}", self.url.0, self.url.1)
    }

    /// Kills the stand-in.
    pub(crate) fn kill(&mut self) {
        let process = self.process.as_mut().expect("a stand-in");
        if let Some(mut child) = process.child.take() {
            child.kill().expect("it is killed");
            child.wait().expect("it ends");
        }
    }

    /// Starts the stand-in, with what it held before.
    pub(crate) fn restart(&mut self) {
        let process = self.process.as_mut().expect("a stand-in");
        let log = File::create(process.folder.path().join("log")).expect("a log file");
        let child = Command::new(program())
            .args(["--host", "127.0.0.1", "--port", &process.port.to_string()])
            .args(["--sync-on-commit", "--storage-path"])
            .arg(process.folder.path().join("data"))
            .current_dir(process.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log)
            .spawn();
        process.child = Some(child.expect("it starts"));
        let until = Instant::now() + READY_LIMIT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, process.port)).is_err() {
            assert!(Instant::now() < until, "the server is not ready in time");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self
            .process
            .as_mut()
            .and_then(|process| process.child.take());
        if let Some(mut child) = child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Splits a URL where the name of its database is.
fn around_database(url: &str) -> (String, String) {
    let scheme_end = url.find("://").expect("a MongoDB URL") + 3;
    let (head, options) = match url.split_once('?') {
        Some((head, options)) => (head, format!("?{options}")),
        None => (url, String::new()),
    };
    let hosts_end = head[scheme_end..].find('/');
    let hosts = hosts_end.map_or(head, |end| &head[..scheme_end + end]);
    (format!("{hosts}/"), options)
}

/// The stand-in's program, in an environment of its own.
fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = target.join(format!("secantusdb-{VERSION}"));
    let program = folder.join("bin").join("secantusd-py");
    // Several tests may want it at once.
    let lock = File::create(target.join("secantusdb.lock")).expect("a lock file");
    lock.lock().expect("a lock");
    if !program.is_file() {
        let run = |program: &Path, arguments: &[&str]| {
            let status = Command::new(program).args(arguments).status();
            assert!(
                status.expect("python3 runs").success(),
                "secantusdb cannot be installed"
            );
        };
        let place = folder.to_str().expect("a path of text");
        run(Path::new("python3"), &["-m", "venv", place]);
        let package = format!("secantusdb=={VERSION}");
        run(
            &folder.join("bin").join("python3"),
            &[
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--pre",
                &package,
            ],
        );
    }
    program
}
