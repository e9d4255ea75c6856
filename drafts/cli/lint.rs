//! `lint`: checks a folder of topic files without changing anything, for CI.

use crate::declarations::{Declared, read_folder};
use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs, read};
use anyhow::Context;
use clap::Args;
use prombus::check_topic;
use prombus_api::http::{SchemaCheck, SchemaQuery};
use prombus_schema::{Compatibility, Schema, check};
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use ureq::http::Method;

/// Check a folder of topic files and schemas: names, owners, retention, and whether schemas break anybody
///
/// Exits with 0 where nothing was found, with 1 where something was.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus lint topics/
  prombus lint topics/ --git HEAD
  prombus lint topics/ --server --url https://bus.example")]
pub(super) struct Lint {
    /// The folder
    folder: PathBuf,
    /// Compare schemas with those of this commit, too
    #[arg(long, value_name = "COMMIT")]
    git: Option<String>,
    /// Compare schemas with those of the server, too
    #[arg(long)]
    server: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// Something that is not as it should be.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    rule: &'static str,
    message: String,
}

/// What a folder is checked with.
struct Linter<'a> {
    git: Option<&'a str>,
    remote: Option<Remote>,
    found: Vec<Found>,
}

impl Lint {
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let mut linter = Linter {
            git: self.git.as_deref(),
            remote: self.server.then(|| self.remote.remote()).transpose()?,
            found: Vec::new(),
        };
        let files = read_folder(&self.folder)?;
        let mut topics: HashMap<String, PathBuf> = HashMap::new();
        for (path, declared) in &files {
            match declared {
                Err(error) => linter.find(path, "bad-file", format!("{error:#}")),
                Ok(declared) => {
                    let first = topics.insert(declared.topic(), path.clone());
                    if let Some(first) = first {
                        let message = format!("{} declares {} already", first.display(), declared.topic());
                        linter.find(path, "duplicate-topic", message);
                    }
                    linter.check(declared)?;
                }
            }
        }
        report(&linter.found, files.len(), format)
    }
}

impl Linter<'_> {
    fn check(&mut self, declared: &Declared) -> anyhow::Result<()> {
        let path = &declared.path;
        if let Err(error) = check_topic(&declared.topic()) {
            self.find(path, "topic-name", error.to_string());
        }
        if declared.entry.owner.as_ref().is_none_or(|owner| owner.trim().is_empty()) {
            self.find(path, "owner-missing", "say who owns the topic: owner = \"…\"".to_owned());
        }
        if !declared.is_bounded() {
            let message = "nothing bounds it: set retention, max_bytes, max_events or compaction";
            self.find(path, "unbounded", message.to_owned());
        }
        let mode = match declared.compatibility() {
            Ok(mode) => mode.unwrap_or_default(),
            Err(error) => {
                self.find(path, "bad-compatibility", error.to_string());
                return Ok(());
            }
        };
        self.check_schema(declared, mode)
    }

    fn check_schema(&mut self, declared: &Declared, mode: Compatibility) -> anyhow::Result<()> {
        let text = match declared.schema_text() {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.find(&declared.path, "schema-missing", format!("{error:#}"));
                return Ok(());
            }
        };
        let place = declared.schema_path().unwrap_or_default();
        let schema = match Schema::parse(&text) {
            Ok(schema) => schema,
            Err(error) => {
                self.find(&place, "schema-invalid", error.to_string());
                return Ok(());
            }
        };
        if let Some(commit) = self.git
            && let Some(earlier) = committed(&place, commit)?
        {
            match Schema::parse(&earlier) {
                Ok(earlier) => {
                    if let Err(error) = check(mode, &[(1, &earlier)], &schema) {
                        let findings: Vec<String> = error.findings.iter().map(ToString::to_string).collect();
                        let message = format!("not {mode} compatible with {commit}: {}", findings.join("; "));
                        self.find(&place, "schema-breaking", message);
                    }
                }
                Err(error) => self.find(&place, "schema-invalid", format!("at {commit}: {error}")),
            }
        }
        if let Some(remote) = &self.remote {
            let query = SchemaQuery {
                compatibility: Some(mode.to_string()),
                dry_run: false,
            };
            let path = format!("/schemas/{}/check?{}", declared.topic(), query.to_query());
            let checked: SchemaCheck = read(&remote.send(Method::POST, &path, text.as_bytes())?)?;
            if !checked.compatible {
                self.find(&place, "schema-incompatible", checked.reason.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn find(&mut self, path: &Path, rule: &'static str, message: String) {
        self.found.push(Found {
            path: path.to_owned(),
            rule,
            message,
        });
    }
}

/// A file as a commit has it; `None` where that has none.
fn committed(path: &Path, commit: &str) -> anyhow::Result<Option<String>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(folder).args(arguments).output();
        output.context("git cannot be run")
    };
    let known = git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{commit}^{{commit}}")])?;
    if !known.status.success() {
        anyhow::bail!("{commit} is no commit of the repository of {}", folder.display());
    }
    let shown = git(&["show", "--end-of-options", &format!("{commit}:./{name}")])?;
    match shown.status.success() {
        true => Ok(Some(String::from_utf8(shown.stdout).context("the committed schema is not UTF-8")?)),
        false => Ok(None),
    }
}

fn report(found: &[Found], files: usize, format: Format) -> anyhow::Result<ExitCode> {
    if format.is_json() {
        let findings = found.iter().map(|found| {
            json!({"path": found.path.display().to_string(), "rule": found.rule, "message": found.message})
        });
        output::json(&json!({"files": files, "findings": findings.collect::<Vec<_>>()}))?;
    } else {
        for found in found {
            output::line(format_args!("{}: {}: {}", found.path.display(), found.rule, found.message))?;
        }
        output::notice(format_args!("{files} topic files, {} findings", found.len()));
    }
    Ok(match found.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
