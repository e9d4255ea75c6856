//! `pub`: publishes one event, or one for each line of stdin.

use super::bulk;
use crate::remote::{Remote, RemoteArgs, read};
use crate::when;
use anyhow::bail;
use clap::Args;
use prombus_api::http::{PublishReply, QueryWriter};
use std::io::{BufRead, Read, stdin};
use std::process::ExitCode;

/// Publish an event, or one for each line of stdin
#[derive(Debug, Args)]
pub(super) struct Publish {
    /// The topic
    #[arg(value_parser = crate::names::topic)]
    topic: String,
    /// The payload as JSON; without it each line of stdin is one
    payload: Option<String>,
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
    #[arg(long, requires = "payload")]
    id: Option<String>,
    /// When it happened, if that was not now
    #[arg(long, value_name = "TIME", value_parser = when::parse, allow_hyphen_values = true)]
    ts: Option<u64>,
    /// The session of the publisher
    #[arg(long)]
    sid: Option<String>,
    /// A tag; give it several times for more
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// A header as `x-name: value`; give it several times for more
    #[arg(short = 'H', long = "header", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl Publish {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let remote = self.remote.remote();
        match &self.payload {
            Some(payload) => self.one(&remote, payload),
            None => self.lines(&remote),
        }
    }

    fn one(&self, remote: &Remote, payload: &str) -> anyhow::Result<ExitCode> {
        let payload = match self.text {
            true => serde_json::to_string(payload)?,
            false => payload.to_owned(),
        };
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&payload) {
            bail!("the payload is not JSON: {error}. Quote it as in '{{\"a\":1}}', or say --text");
        }
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain([("content-type", "application/json")])
            .collect();
        let answer = remote.post(&self.path(), &headers, &payload)?;
        if self.json {
            println!("{answer}");
            return Ok(ExitCode::SUCCESS);
        }
        let reply: PublishReply = read(&answer)?;
        let already = match reply.duplicate {
            true => ", which was there already",
            false => "",
        };
        println!("{} at {}/{}{already}", reply.id, reply.topic, reply.seq);
        Ok(ExitCode::SUCCESS)
    }

    fn lines(&self, remote: &Remote) -> anyhow::Result<ExitCode> {
        let has_headers = !self.headers.is_empty();
        if has_headers {
            bail!("headers are for a single event; with --envelope each line brings its own");
        }
        let answer = match self.text {
            true => remote.post_lines(&self.path(), TextLines::new(stdin().lock()))?,
            false => remote.post_lines(&self.path(), stdin())?,
        };
        bulk::report(&answer, self.json)
    }

    fn path(&self) -> String {
        let mut query = QueryWriter::default();
        query
            .push_if("key", self.key.as_ref())
            .push_if("id", self.id.as_ref())
            .push_if("ts", self.ts)
            .push_if("sid", self.sid.as_ref())
            .push_if("envelope", self.envelope.then_some(1));
        for tag in &self.tags {
            query.push("tags", tag);
        }
        format!("/publish/{}?{}", self.topic, query.finish())
    }
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("a header is like x-name: value")?;
    let name = name.trim().to_ascii_lowercase();
    if !prombus_api::http::is_event_header(&name) {
        return Err("only x-…, traceparent and tracestate become headers of the event".to_owned());
    }
    Ok((name, value.trim().to_owned()))
}

/// Lines of text as lines of JSON strings.
struct TextLines<R> {
    lines: R,
    line: String,
    /// What was made of the last line, and how much of it has been read.
    json: Vec<u8>,
    taken: usize,
}

impl<R: BufRead> TextLines<R> {
    fn new(lines: R) -> Self {
        Self {
            lines,
            line: String::new(),
            json: Vec::new(),
            taken: 0,
        }
    }
}

impl<R: BufRead> Read for TextLines<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.taken == self.json.len() {
            self.line.clear();
            if self.lines.read_line(&mut self.line)? == 0 {
                return Ok(0);
            }
            let text = self.line.trim_end_matches(['\n', '\r']);
            self.json = serde_json::to_vec(text)?;
            self.json.push(b'\n');
            self.taken = 0;
        }
        let count = into.len().min(self.json.len() - self.taken);
        into[..count].copy_from_slice(&self.json[self.taken..][..count]);
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_text_become_json() {
        let text: &[u8] = b"one\r\nsay \"hi\"\n\nlast";
        let mut json = String::new();
        TextLines::new(text)
            .read_to_string(&mut json)
            .expect("it is read");
        assert_eq!(json, "\"one\"\n\"say \\\"hi\\\"\"\n\"\"\n\"last\"\n");
    }

    #[test]
    fn headers_that_would_get_lost_are_refused() {
        assert_eq!(
            parse_header("X-Trace: a:b"),
            Ok(("x-trace".to_owned(), "a:b".to_owned()))
        );
        assert!(parse_header("accept: a").is_err());
        assert!(parse_header("x-a").is_err());
    }
}
