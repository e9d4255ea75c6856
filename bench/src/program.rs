//! The server under test: the release build beside this program.

use crate::{Outcome, log_progress};
use std::path::PathBuf;
use std::process::Command;

/// The path of the server. Where cargo runs this, the server is built first.
pub fn find_prombus() -> Outcome<PathBuf> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        log_progress("building prombus");
        let mut build = Command::new(cargo);
        build.args(["build", "--release", "-p", "prombus-cli"]);
        // The workspace that this was compiled in, wherever it is started.
        build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        run(&mut build)?;
    }
    let program = beside_this("prombus")?;
    if program.is_file() {
        Ok(program)
    } else {
        Err("build the server first: cargo build --release -p prombus-cli".into())
    }
}

/// Runs a command to its end, with its output on stderr: only figures go to stdout.
pub fn run(command: &mut Command) -> Outcome<()> {
    let name = format!("{command:?}");
    let status = command.stdout(std::io::stderr()).status();
    if status
        .map_err(|error| format!("{name}: {error}"))?
        .success()
    {
        Ok(())
    } else {
        Err(format!("{name} failed").into())
    }
}

/// A path in the folder of this program.
pub fn beside_this(name: &str) -> Outcome<PathBuf> {
    let this = std::env::current_exe()?;
    Ok(this.parent().ok_or("the program has no folder")?.join(name))
}
