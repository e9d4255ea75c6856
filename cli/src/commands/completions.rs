//! `completions`: what a shell needs to complete commands, flags, topics and groups.

use crate::output;
use anyhow::Context;
use clap::{Args, ValueEnum};
use clap_complete::env::Shells;
use std::io::Write;

/// Print a completion script for a shell; it also completes names of topics, groups and contexts
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus completions bash > /etc/bash_completion.d/prombus
  prombus completions zsh > ~/.zfunc/_prombus
  prombus completions fish > ~/.config/fish/completions/prombus.fish")]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Completions {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let name = self.shell.to_possible_value();
        let name = name.context("a shell has a name")?;
        let shells = Shells::builtins();
        let shell = shells.completer(name.get_name());
        let shell = shell.context("unknown shell")?;
        let mut script = Vec::new();
        shell.write_registration("COMPLETE", "prombus", "prombus", "prombus", &mut script)?;
        Ok(output::stdout().write_all(&script)?)
    }
}
