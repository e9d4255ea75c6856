//! A command on a terminal of its own: what it shows there, and keys that are pressed.

use crate::server::prombus;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often it is looked for something, with pauses of 20 ms: half a minute.
const MAX_LOOKS: usize = 1_500;

/// A command whose stdin, stdout and stderr are a terminal.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("its rights");
        unlockpt(&master).expect("its lock");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let name = name.to_str().expect("a path").to_owned();
        let open = || {
            let file = OpenOptions::new().read(true).write(true).open(&name);
            OwnedFd::from(file.expect("the other side"))
        };
        let size = rustix::termios::Winsize {
            ws_row: 40,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&master, size).expect("its size");
        let child = prombus(folder, arguments)
            .env("TERM", "xterm")
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .expect("it starts");
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().expect("a second handle");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            // It fails when the command has ended and nobody has the other side open.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                shown
                    .lock()
                    .expect("the screen")
                    .extend_from_slice(&buffer[..count]);
            }
        });
        Self {
            child,
            keyboard,
            screen,
        }
    }

    /// Everything that was written so far.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("the screen")).into_owned()
    }

    /// Waits until the text was written.
    pub(crate) fn wait_for(&self, text: &str) {
        for _ in 0..MAX_LOOKS {
            if self.shown().contains(text) {
                return;
            }
            pause();
        }
        panic!("{text:?} is not in {:?}", self.shown());
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("it listens");
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        for _ in 0..MAX_LOOKS {
            if let Some(status) = self.child.try_wait().expect("its state") {
                return status;
            }
            pause();
        }
        panic!("it did not end: {:?}", self.shown());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "another process is waited for, which notifies nobody"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
