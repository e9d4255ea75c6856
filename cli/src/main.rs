//! The prombus binary: the server, and everything one does with it from a shell. Data goes to stdout, everything else
//! to stderr; an error says what to do next and exits with 1, a wrong call with 2.

mod arguments;
mod backup;
mod commands;
mod completion;
mod config;
mod confirm;
mod contexts;
mod escape;
mod file_limit;
mod jwks;
mod logging;
mod names;
mod output;
mod progress;
mod remote;
mod server;
mod server_url;
mod signals;
mod size;
mod store;
mod table;
mod time;
mod topic_files;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use remote::ApiError;
use serde_json::json;

use std::process::ExitCode;

#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The code of errors that do not come from a server.
const CLI_ERROR: &str = "cli_error";

fn main() -> ExitCode {
    // Ends here where a shell asks for completions.
    CompleteEnv::with_factory(commands::Cli::command).complete();
    let words = std::env::args_os().collect();
    let cli = commands::Cli::parse_from(arguments::server_flags_behind_command(words));
    let format = cli.format();
    match cli.run() {
        Ok(code) => code,
        // What was written is all that its reader wanted.
        Err(error) if output::is_closed_stdout(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error, format);
            ExitCode::FAILURE
        }
    }
}

fn report(error: &anyhow::Error, format: output::Format) {
    let text = format!("{error:#}");
    if format.is_json() {
        let code = ApiError::code_text(error).unwrap_or(CLI_ERROR);
        output::notice(json!({"code": code, "error": text}));
    } else {
        output::notice(format_args!("prombus: {}", escape::controls(&text)));
    }
}
