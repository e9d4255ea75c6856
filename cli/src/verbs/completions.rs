//! `completions`: what a shell needs to complete the verbs and their flags.

use super::Cli;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print a completion script for a shell, e.g. `prombus completions bash > /etc/bash_completion.d/prombus`
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) {
        let mut command = Cli::command();
        clap_complete::generate(self.shell, &mut command, "prombus", &mut std::io::stdout());
    }
}
