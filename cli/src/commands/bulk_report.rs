//! The outcome of many lines, for `pub` and `import`.

use crate::escape;
use crate::output::{self, Format};
use crate::remote::read;
use prombus_api::http::BulkReply;
use std::process::ExitCode;

/// Prints it. Lines that were not stored make the command fail.
pub(super) fn print(reply: &str, format: Format) -> anyhow::Result<ExitCode> {
    let counts: BulkReply = read(reply)?;
    if format.is_json() {
        output::json_text(reply)?;
    } else {
        output::line(format_args!(
            "{} lines: {} stored, {} duplicates, {} failed",
            counts.lines, counts.published, counts.duplicates, counts.failed
        ))?;
        for error in &counts.errors {
            let text = escape::controls(&error.error);
            output::notice(format_args!("line {}: {text} ({})", error.line, error.code));
        }
        if counts.errors_left_out > 0 {
            output::notice(format_args!("and {} more", counts.errors_left_out));
        }
        if let Some(stopped) = &counts.stopped {
            let text = escape::controls(&stopped.error);
            output::notice(format_args!("stopped there: {text} ({})", stopped.code));
        }
    }
    if counts.failed == 0 && counts.stopped.is_none() {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::FAILURE)
    }
}
