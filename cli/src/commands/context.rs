//! `context`: named servers, so that nobody types URLs and tokens twice.

use crate::contexts::{Contexts, Server};
use crate::output::{self, Format};
use crate::{completion, server_url, table};
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use serde_json::json;

/// Name servers, and choose which one commands talk to
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus context add staging --url https://bus.staging.example
  prombus context use staging
  prombus context ls")]
pub(super) struct ContextCommand {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Add a context, or replace the one with its name; the first becomes the current one
    #[command(after_help = "Examples:
  prombus context add local --url localhost:8090
  prombus context add prod --url https://bus.example --token \"$TOKEN\"")]
    Add {
        /// Its name
        name: String,
        /// The server
        #[arg(long, value_parser = server_url::parse)]
        url: String,
        /// The token to send; it is kept in a file that only you can read
        #[arg(long)]
        token: Option<String>,
    },
    /// Make a context the current one
    #[command(after_help = "Examples:
  prombus context use prod")]
    Use {
        /// Its name
        #[arg(add = ArgValueCandidates::new(completion::contexts))]
        name: String,
    },
    /// List the contexts
    #[command(after_help = "Examples:
  prombus context ls
  prombus context ls --json")]
    Ls,
    /// Remove a context
    #[command(after_help = "Examples:
  prombus context rm staging")]
    Rm {
        /// Its name
        #[arg(add = ArgValueCandidates::new(completion::contexts))]
        name: String,
    },
}

impl ContextCommand {
    pub(super) fn run(self, format: Format) -> anyhow::Result<()> {
        let mut contexts = Contexts::load()?;
        let name = match self.command {
            Subcommands::Ls => return list(&contexts, format),
            Subcommands::Add { name, url, token } => {
                contexts.add(&name, Server { url, token })?;
                name
            }
            Subcommands::Use { name } => {
                contexts.get(&name)?;
                contexts.current = Some(name.clone());
                name
            }
            Subcommands::Rm { name } => {
                contexts.remove(&name)?;
                name
            }
        };
        contexts.save()?;
        let is_current = contexts.current.as_ref() == Some(&name);
        let server = contexts.contexts.get(&name);
        if format.is_json() {
            let url = server.map(|server| &server.url);
            return output::json(&json!({"context": name, "url": url, "current": is_current}));
        }
        match server {
            Some(server) if is_current => output::line(format_args!(
                "{name} is the current context: {}",
                server.url
            )),
            Some(server) => output::line(format_args!("{name}: {}", server.url)),
            None => output::line(format_args!("{name} was removed")),
        }
    }
}

fn list(contexts: &Contexts, format: Format) -> anyhow::Result<()> {
    let current = contexts.current.as_ref();
    if format.is_json() {
        let list = contexts.contexts.iter().map(|(name, server)| {
            json!({
                "context": name,
                "url": server.url,
                "token": server.token.is_some(),
                "current": current == Some(name),
            })
        });
        return output::json(&json!({"contexts": list.collect::<Vec<_>>()}));
    }
    let rows: Vec<Vec<String>> = contexts
        .contexts
        .iter()
        .map(|(name, server)| {
            let mark = if current == Some(name) { "*" } else { "" };
            let token = if server.token.is_some() { "yes" } else { "no" };
            vec![
                mark.to_owned(),
                name.clone(),
                server.url.clone(),
                token.to_owned(),
            ]
        })
        .collect();
    table::print(&["", "context", "url", "token"], &rows)
}
