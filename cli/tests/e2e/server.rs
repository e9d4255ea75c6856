//! A server of this run alone: its folder, its process, and asking it things.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before the test gives up; far more than it needs on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How long a server may take to be ready; longer than it waits for the servers of its store.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// So much of a server's log is kept.
const MAX_LOG_BYTES: usize = 1 << 20;

/// A running server, killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) folder: Arc<TempDir>,
    log: Arc<Mutex<String>>,
}

/// The binary, in a folder, with nothing of the caller's environment that would configure it.
pub(crate) fn prombus(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prombus"));
    command
        .current_dir(folder)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null());
    command
}

/// Runs a verb to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    prombus(folder, arguments).output().expect("it runs")
}

impl Server {
    /// A server on a fresh folder.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let folder = Arc::new(TempDir::new().expect("a folder"));
        Self::start_in(folder, arguments)
    }

    /// A server on a folder that may hold what another one left.
    pub(crate) fn start_in(folder: Arc<TempDir>, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        Self::ready(prombus(folder.path(), &all), folder)
    }

    /// Waits until a server says that it is ready.
    pub(crate) fn ready(mut command: Command, folder: Arc<TempDir>) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = child.stdout.take().expect("its output");
        let (tell, told) = sync_channel(1);
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = tell.send(line);
        });
        // What it says on stderr is read away, or it would stop at a full pipe.
        let stderr = BufReader::new(child.stderr.take().expect("its errors"));
        let log = Arc::new(Mutex::new(String::new()));
        let kept = log.clone();
        let reading = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut kept = kept.lock().expect("the log");
                if kept.len() < MAX_LOG_BYTES {
                    kept.push_str(&line);
                    kept.push('\n');
                }
            }
        });
        let line = told.recv_timeout(READY_LIMIT).expect("a line in time");
        let url = line.strip_prefix("prombus ready on ");
        let Some(url) = url else {
            let status = child.wait().expect("it ends");
            reading.join().expect("its errors are read");
            let logged = log.lock().expect("the log");
            panic!("not ready but {status}, {line:?} on stdout: {logged}");
        };
        let url = url.split_whitespace().next().expect("an address");
        let url = url.to_owned();
        Self {
            child,
            url,
            folder,
            log,
        }
    }

    /// What it has logged so far.
    pub(crate) fn logged(&self) -> String {
        self.log.lock().expect("the log").clone()
    }

    /// The status and the body of a `GET`.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut response = agent().get(self.at(path)).call().expect("an answer");
        let text = response.body_mut().read_to_string().expect("a body");
        (response.status().as_u16(), text)
    }

    /// The status and the body of a `POST`.
    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        let mut response = agent().post(self.at(path)).send(body).expect("an answer");
        let text = response.body_mut().read_to_string().expect("a body");
        (response.status().as_u16(), text)
    }

    /// A URL of this server.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Host and port, for raw sockets.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").expect("an address")
    }

    /// Runs a verb of the binary against this server.
    pub(crate) fn command(&self, arguments: &[&str]) -> Output {
        let mut all = arguments.to_vec();
        all.extend(["--url", &self.url]);
        run(self.folder.path(), &all)
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for the end of the process.
    #[allow(
        clippy::disallowed_methods,
        reason = "another process is waited for, and std has no waiting with a limit"
    )]
    pub(crate) fn wait(mut self) -> ExitStatus {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("its state") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not end");
    }

    /// Ends the process as a crash would.
    pub(crate) fn kill(mut self) -> Arc<TempDir> {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it ended");
        self.folder.clone()
    }

    /// Bytes of memory that the process has.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let mut status = String::new();
        std::fs::File::open(format!("/proc/{}/status", self.child.id()))
            .and_then(|mut file| file.read_to_string(&mut status))
            .expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kilobytes
            .and_then(|text| text.parse::<u64>().ok())
            .expect("a number")
            << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        .build()
        .into()
}
