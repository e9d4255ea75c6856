//! Asking before something is gone for good.

use anyhow::bail;
use std::io::{IsTerminal, Write, stderr, stdin};

/// Asks whether to go on, unless `yes` is set. Without a terminal that is an error.
pub(crate) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !stdin().is_terminal() {
        bail!("{question} stdin is not a terminal; pass --yes");
    }
    write!(stderr().lock(), "{question} [y/N] ")?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}
