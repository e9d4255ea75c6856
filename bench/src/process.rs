//! A server as a child process: started on a free port, paused while others are measured, gone with its handle.

use crate::Outcome;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// How long a server may take to start, also with ten million events.
pub const START_LIMIT: Duration = Duration::from_secs(180);
const STOP_LIMIT: Duration = Duration::from_secs(60);
const POLL_PAUSE: Duration = Duration::from_millis(2);

/// A running server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts a program that talks to nobody.
    pub fn start(command: &mut Command) -> Outcome<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self::spawn(command)
    }

    /// Starts a program and waits for the first line that it prints.
    pub fn start_and_read_line(command: &mut Command) -> Outcome<(Self, String)> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Self::spawn(command)?;
        let output = process
            .child
            .stdout
            .take()
            .ok_or("there is no output to read")?;
        let (sender, line) = sync_channel(1);
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut first = String::new();
            // Whoever waited may have given up.
            let _ = sender.send(output.read_line(&mut first).map(|_| first));
            // What else is printed must not fill the pipe.
            let _ = std::io::copy(&mut output, &mut std::io::sink());
        });
        let line = line.recv_timeout(START_LIMIT);
        let line = line.map_err(|_| format!("{} is not ready in time", process.name))??;
        if line.is_empty() {
            Err(format!("{} ended before it was ready", process.name).into())
        } else {
            Ok((process, line))
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if it has ended.
    pub fn check(&mut self) -> Outcome<()> {
        match self.child.try_wait()? {
            Some(status) => Err(format!("{} ended: {status}", self.name).into()),
            None => Ok(()),
        }
    }

    /// Takes the processor away from it, so that it does not disturb what is measured.
    pub fn pause(&self) -> Outcome<()> {
        self.signal("STOP")
    }

    /// Lets it go on.
    pub fn resume(&self) -> Outcome<()> {
        self.signal("CONT")
    }

    /// Asks it to end in good order and waits for that.
    pub fn stop(&mut self) -> Outcome<()> {
        self.resume()?;
        self.signal("TERM")?;
        let until = Instant::now() + STOP_LIMIT;
        while Instant::now() < until {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(POLL_PAUSE);
        }
        Err(format!("{} does not stop", self.name).into())
    }

    /// The memory that it holds at the moment.
    pub fn resident_bytes(&self) -> Outcome<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB"));
        let kilobytes =
            kilobytes.ok_or_else(|| format!("nothing tells the memory of {}", self.name))?;
        Ok(kilobytes.trim().parse::<u64>()? << 10)
    }

    fn spawn(command: &mut Command) -> Outcome<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { child, name })
    }

    /// Through the program, because signals are not in the standard library.
    fn signal(&self, signal: &str) -> Outcome<()> {
        let id = self.id().to_string();
        let status = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(id)
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{} takes no {signal}", self.name).into())
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody has at the moment.
pub fn free_port() -> Outcome<u16> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    Ok(listener.local_addr()?.port())
}

/// What the files in a folder take on the disk.
pub fn disk_bytes(folder: &Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt;
    const BLOCK_BYTES: u64 = 512;
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        sum += if found.is_dir() {
            disk_bytes(&entry.path())?
        } else {
            found.blocks() * BLOCK_BYTES
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_ready_with_its_first_line_and_stops_when_asked() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; exec sleep 60"]);
        let (mut process, line) = Process::start_and_read_line(&mut command).unwrap();
        assert_eq!(line, "ready\n");
        process.check().unwrap();
        assert!(process.resident_bytes().unwrap() > 0);
        process.pause().unwrap();
        process.stop().unwrap();
    }

    #[test]
    fn a_program_that_ends_at_once_is_told() {
        assert!(Process::start_and_read_line(&mut Command::new("true")).is_err());
    }
}
