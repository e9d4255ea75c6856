//! `lint`: checks a folder of topic files and schemas without changing anything, for CI.

mod committed;

use crate::output::{self, Format};
use crate::remote::{Remote, RemoteArgs, read};
use crate::topic_files::{TopicFile, read_folder};
use clap::Args;
use prombus::check_topic;
use prombus_api::http::{SchemaCheck, SchemaQuery};
use prombus_schema::{Compatibility, Schema, check};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
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
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Compare the schemas with those of this commit, too
    #[arg(long, value_name = "COMMIT")]
    git: Option<String>,
    /// Compare the schemas with those of the server, too
    #[arg(long)]
    server: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// A rule that a file broke.
#[derive(Debug, Clone, Serialize)]
struct Finding {
    path: String,
    /// Its id, which stays the same.
    rule: &'static str,
    message: String,
}

/// What a folder is checked with.
struct Linter<'a> {
    commit: Option<&'a str>,
    remote: Option<Remote>,
    findings: Vec<Finding>,
}

impl Lint {
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let mut linter = Linter {
            commit: self.git.as_deref(),
            remote: self.server.then(|| self.remote.remote()).transpose()?,
            findings: Vec::new(),
        };
        let files = read_folder(&self.folder)?;
        let mut first_files: HashMap<&str, &Path> = HashMap::new();
        for (path, file) in &files {
            let file = match file {
                Ok(file) => file,
                Err(error) => {
                    linter.add(path, "bad-file", format!("{error:#}"));
                    continue;
                }
            };
            if let Some(first) = first_files.insert(&file.topic, path) {
                let message = format!("{} declares {} already", first.display(), file.topic);
                linter.add(path, "duplicate-topic", message);
            }
            linter.check(file)?;
        }
        report(&linter.findings, files.len(), format)
    }
}

impl Linter<'_> {
    fn check(&mut self, file: &TopicFile) -> anyhow::Result<()> {
        if let Err(error) = check_topic(&file.topic) {
            self.add(&file.path, "topic-name", error.to_string());
        } else if let Err(error) = file.check() {
            self.add(&file.path, "bad-setting", format!("{error:#}"));
        }
        if file.owner.is_none() {
            self.add(&file.path, "owner-missing", "no owner; add owner = \"…\"");
        }
        if !file.is_bounded() {
            let message =
                "events are kept forever; set retention, max_bytes, max_events or compaction";
            self.add(&file.path, "unbounded", message);
        }
        let text = match file.schema_text() {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.add(&file.path, "schema-missing", format!("{error:#}"));
                return Ok(());
            }
        };
        let path = file.schema_path().unwrap_or_default();
        match Schema::parse(&text) {
            Ok(schema) => self.check_schema(file, &path, &schema, &text),
            Err(error) => {
                self.add(&path, "schema-invalid", error.to_string());
                Ok(())
            }
        }
    }

    fn check_schema(
        &mut self,
        file: &TopicFile,
        path: &Path,
        schema: &Schema,
        text: &str,
    ) -> anyhow::Result<()> {
        let mode = file.compatibility().unwrap_or_default();
        if let Some(commit) = self.commit
            && let Some(earlier) = committed::text(path, commit)?
        {
            self.check_committed(path, (commit, &earlier), mode, schema);
        }
        let Some(remote) = self
            .remote
            .as_ref()
            .filter(|_| check_topic(&file.topic).is_ok())
        else {
            return Ok(());
        };
        let query = SchemaQuery {
            compatibility: file.compatibility().map(|mode| mode.to_string()),
            dry_run: false,
        };
        let target = format!("/schemas/{}/check?{}", file.topic, query.to_query());
        let reply = remote.send(Method::POST, target.trim_end_matches('?'), text.as_bytes())?;
        let checked: SchemaCheck = read(&reply)?;
        if !checked.compatible {
            let message = checked.reason.unwrap_or_default();
            self.add(path, "schema-incompatible", message);
        }
        Ok(())
    }

    fn check_committed(
        &mut self,
        path: &Path,
        (commit, earlier): (&str, &str),
        mode: Compatibility,
        schema: &Schema,
    ) {
        // A commit whose schema was none has nobody who relies on it.
        let Ok(earlier) = Schema::parse(earlier) else {
            return;
        };
        if let Err(error) = check(mode, &[(1, &earlier)], schema) {
            let findings: Vec<String> = error.findings.iter().map(ToString::to_string).collect();
            let message = format!(
                "not {mode} compatible with {commit}: {}",
                findings.join("; ")
            );
            self.add(path, "schema-breaking", message);
        }
    }

    fn add(&mut self, path: &Path, rule: &'static str, message: impl Into<String>) {
        self.findings.push(Finding {
            path: path.display().to_string(),
            rule,
            message: message.into(),
        });
    }
}

fn report(findings: &[Finding], files: usize, format: Format) -> anyhow::Result<ExitCode> {
    if format.is_json() {
        output::json(&json!({"files": files, "findings": findings}))?;
    } else {
        for Finding {
            path,
            rule,
            message,
        } in findings
        {
            output::line(format_args!("{path}: {rule}: {message}"))?;
        }
        let count = findings.len();
        output::notice(format_args!("{files} topic files, {count} findings"));
    }
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
