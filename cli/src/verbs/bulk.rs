//! What became of many lines, for `pub` and `import`.

use crate::remote::read;
use prombus_api::http::BulkReply;
use std::process::ExitCode;

/// Tells it. Lines that were not stored make the verb fail.
pub(super) fn report(answer: &str, json: bool) -> anyhow::Result<ExitCode> {
    let reply: BulkReply = read(answer)?;
    if json {
        println!("{answer}");
    } else {
        println!(
            "{} lines: {} stored, {} were there already, {} failed",
            reply.lines, reply.published, reply.duplicates, reply.failed
        );
        for error in &reply.errors {
            eprintln!("line {}: {} ({})", error.line, error.error, error.code);
        }
        if reply.errors_left_out > 0 {
            eprintln!("and {} more", reply.errors_left_out);
        }
        if let Some(stopped) = &reply.stopped {
            eprintln!("stopped there: {} ({})", stopped.error, stopped.code);
        }
    }
    Ok(match reply.failed == 0 && reply.stopped.is_none() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
