//! What the figures were made on.

use serde::Serialize;
use std::fmt;
use std::fs;
use std::process::Command;

/// The machine and the servers' versions, as far as the system tells.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    pub(crate) nats: String,
    pub(crate) redis: String,
}

impl Machine {
    /// Looks at the machine.
    pub(crate) fn look(programs: &super::programs::Programs) -> Self {
        let kilobytes = field("/proc/meminfo", "MemTotal")
            .and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Self {
            cores: std::thread::available_parallelism().map_or(0, |cores| cores.get()),
            processor: field("/proc/cpuinfo", "model name").unwrap_or_default(),
            memory_mib: kilobytes.unwrap_or_default() >> 10,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            nats: version(Command::new(&programs.nats)),
            redis: version(Command::new(&programs.redis)),
        }
    }
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_once(':'));
    Some(value?.1.trim().to_owned())
}

fn version(mut command: Command) -> String {
    let output = command.arg("--version").output();
    output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cores,
            processor,
            memory_mib,
            kernel,
            nats,
            redis,
        } = self;
        write!(
            f,
            "{cores} cores of {processor}, {memory_mib} MiB, Linux {kernel}; {nats}; {redis}"
        )
    }
}
