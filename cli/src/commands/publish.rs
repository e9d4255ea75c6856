//! `pub`: publishes one event from an argument, a file or stdin, or one for each line of stdin.

mod text_lines;

use super::bulk_report;
use crate::output::{self, Format};
use crate::progress::{input_bytes, watch};
use crate::remote::{Remote, RemoteArgs, read};
use crate::{completion, time};
use anyhow::{Context, bail};
use clap::Args;
use clap_complete::ArgValueCandidates;
use prombus_api::http::{
    Age, Body as _, Envelope, PublishReply, QueryWriter, ScheduleReply, is_event_header,
};
use prombus_api::options::PublishOptions;
use std::fs;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use text_lines::TextLines;

/// The most bytes that are read as one payload; the largest payload that a server can be configured to take.
const MAX_PAYLOAD_BYTES: u64 = 32 << 20;

/// Publish an event, or one for each line of stdin
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus pub orders '{\"n\":1}' --key customer-7
  prombus pub notes --text 'hello there'
  prombus pub orders --file order.json
  jq '.order' big.json | prombus pub orders -
  prombus pub orders < orders.ndjson
  prombus pub reminders '{\"n\":1}' --delay 2h
  prombus pub reports '{}' --every '0 9 * * 1-5 Europe/Berlin'")]
pub(super) struct Publish {
    /// The topic
    #[arg(value_parser = crate::names::topic, add = ArgValueCandidates::new(completion::topics))]
    topic: String,
    /// The payload as JSON, or `-` for all of stdin; without it each line of stdin is one
    payload: Option<String>,
    /// Read the payload from a file, all of it as one event
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["payload", "envelope"])]
    file: Option<PathBuf>,
    /// The payload, or each line, is plain text rather than JSON
    #[arg(long, conflicts_with = "envelope")]
    text: bool,
    /// Each line is an object with the payload and its options: {"payload":…,"key":…}
    #[arg(long, conflicts_with = "payload")]
    envelope: bool,
    /// The event's key
    #[arg(long)]
    key: Option<String>,
    /// An id of your own; one that the topic holds is not stored again
    #[arg(long)]
    id: Option<String>,
    /// When it happened, if that was not now
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    ts: Option<u64>,
    /// The session of the publisher
    #[arg(long)]
    sid: Option<String>,
    /// A tag; repeat it for more
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// A header as `name: value`; repeat it for more
    #[arg(short = 'H', long = "header", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// The id of an event that caused this one; repeat it for more
    #[arg(long, value_name = "ID")]
    caused_by: Vec<String>,
    /// Publish only if this is the topic's last seq (0: it is empty)
    #[arg(long, value_name = "SEQ")]
    expect_seq: Option<u64>,
    /// Publish only if the last event of the key has this seq (0: there is none)
    #[arg(long, value_name = "SEQ", requires = "key")]
    expect_key_seq: Option<u64>,
    /// Publish after this long, like 30s or 12h
    #[arg(long, value_name = "DURATION", value_parser = time::parse_age, conflicts_with = "at")]
    delay: Option<Age>,
    /// Publish at this time
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true)]
    at: Option<u64>,
    /// Publish again and again: an interval like 5m, or a cron line like '0 9 * * 1-5 Europe/Berlin'
    #[arg(long, value_name = "INTERVAL|CRON")]
    every: Option<String>,
    /// Publish also for each time that was missed while the server was down
    #[arg(long, requires = "every")]
    catch_up: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Publish {
    pub(super) fn run(self, format: Format) -> anyhow::Result<ExitCode> {
        let remote = self.remote.remote()?;
        match (&self.payload, &self.file) {
            (_, Some(path)) => self.one(&remote, &read_file(path)?, format),
            (Some(payload), None) if payload == "-" => {
                self.one(&remote, &read_payload(stdin(), "stdin")?, format)
            }
            (Some(payload), None) => self.one(&remote, payload, format),
            (None, None) => self.lines(&remote, format),
        }
    }

    fn one(&self, remote: &Remote, payload: &str, format: Format) -> anyhow::Result<ExitCode> {
        let payload = if self.text {
            serde_json::to_string(payload)?
        } else {
            payload.to_owned()
        };
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&payload) {
            bail!("the payload is not JSON: {error}. Quote it as in '{{\"a\":1}}', or pass --text");
        }
        // Around the payload there is room for headers of any name; those of a request may only be some.
        let envelope = Envelope {
            payload: &payload,
            options: PublishOptions {
                headers: self.headers.clone(),
                caused_by: self.caused_by.clone(),
                ..PublishOptions::default()
            },
        };
        let body = String::from_utf8(envelope.to_json())?;
        let content_type = [("content-type", "application/json")];
        let reply = remote.post(&self.path(true), &content_type, &body)?;
        if format.is_json() {
            output::json_text(&reply)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.is_scheduled() {
            let ScheduleReply { id, topic, due, .. } = read(&reply)?;
            let due = time::show(due);
            output::line(format_args!("{id} to {topic} at {due}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let reply: PublishReply = read(&reply)?;
        let duplicate = if reply.duplicate { " (duplicate)" } else { "" };
        output::line(format_args!(
            "{} at {}/{}{duplicate}",
            reply.id, reply.topic, reply.seq
        ))?;
        Ok(ExitCode::SUCCESS)
    }

    fn lines(&self, remote: &Remote, format: Format) -> anyhow::Result<ExitCode> {
        if !self.headers.is_empty() || !self.caused_by.is_empty() || self.id.is_some() {
            bail!(
                "--header, --caused-by and --id are for a single event; with --envelope each line brings its own"
            );
        }
        let input = watch(stdin().lock(), input_bytes(&stdin()));
        let reply = if self.text {
            remote.post_lines(&self.path(false), TextLines::new(input))?
        } else {
            remote.post_lines(&self.path(self.envelope), input)?
        };
        bulk_report::print(&reply, format)
    }

    fn is_scheduled(&self) -> bool {
        self.delay.is_some() || self.at.is_some() || self.every.is_some()
    }

    fn path(&self, is_envelope: bool) -> String {
        let mut query = QueryWriter::default();
        query
            .push_if("key", self.key.as_ref())
            .push_if("id", self.id.as_ref())
            .push_if("ts", self.ts)
            .push_if("sid", self.sid.as_ref())
            .push_if("expect_seq", self.expect_seq)
            .push_if("expect_key_seq", self.expect_key_seq)
            .push_if("delay_ms", self.delay.map(|delay| delay.ms))
            .push_if("deliver_at", self.at)
            .push_if("every", self.every.as_ref())
            .push_if("catch_up", self.catch_up.then_some(1))
            .push_if("envelope", is_envelope.then_some(1));
        for tag in &self.tags {
            query.push("tags", tag);
        }
        format!("/publish/{}?{}", self.topic, query.finish())
    }
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    let name = path.display().to_string();
    let file = fs::File::open(path).with_context(|| format!("cannot read {name}"))?;
    read_payload(file, &name)
}

fn read_payload(input: impl Read, name: &str) -> anyhow::Result<String> {
    let mut payload = String::new();
    let mut limited = input.take(MAX_PAYLOAD_BYTES + 1);
    limited
        .read_to_string(&mut payload)
        .with_context(|| format!("cannot read {name}"))?;
    if payload.len() as u64 > MAX_PAYLOAD_BYTES {
        bail!(
            "{name} is larger than any payload; publish its lines instead: prombus pub TOPIC < FILE"
        );
    }
    Ok(payload)
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("invalid header; expected one like name: value")?;
    let name = name.trim();
    if name.is_empty() {
        return Err("invalid header; it has no name".to_owned());
    }
    // As it would come in the head of a request.
    let lower = name.to_ascii_lowercase();
    let name = if is_event_header(&lower) {
        lower
    } else {
        name.to_owned()
    };
    Ok((name, value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_any_name() {
        for (text, name, value) in [
            ("X-Trace: a:b", "x-trace", "a:b"),
            ("correlationId: 7", "correlationId", "7"),
        ] {
            let expected = (name.to_owned(), value.to_owned());
            assert_eq!(parse_header(text), Ok(expected));
        }
        assert!(parse_header("x-a").is_err());
        assert!(parse_header(": a").is_err());
    }
}
