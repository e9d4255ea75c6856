//! Asking before something is gone for good.

use anyhow::bail;
use std::io::{IsTerminal, stdin};

/// Asks whether to go on, unless `yes` was said already. Where nobody can answer, that is an error.
pub(crate) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !stdin().is_terminal() {
        bail!("{question} Say --yes, for there is nobody to ask");
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}
