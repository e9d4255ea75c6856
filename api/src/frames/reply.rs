//! OK and ERR: the replies.

use super::required;
use crate::code::Code;
use crate::scan::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, write_list, write_number, write_text};
use std::borrow::Cow;

/// Something was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OkFrame<'a> {
    /// Of the frame that it answers.
    pub corr: Option<Cow<'a, str>>,
    /// The id of the published event.
    pub id: Option<Cow<'a, str>>,
    /// Its position.
    pub seq: Option<u64>,
    /// Its time in epoch milliseconds; a server of before does not say.
    pub ts: Option<u64>,
    /// The topic held this id already.
    pub duplicate: bool,
    /// A PUBLISH's: the event is to be published later, and has no position yet.
    pub scheduled: bool,
    /// When that is due, in epoch milliseconds.
    pub due: Option<u64>,
    /// The group of a subscription.
    pub group: Option<Cow<'a, str>>,
    /// What was published with it: by the `publish` of an ACK, by the `also_publish` of a PUBLISH.
    pub published: Vec<PublishedFrame<'a>>,
}

/// An event that was published with something else, as its OK reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublishedFrame<'a> {
    /// Where it is.
    pub topic: Cow<'a, str>,
    /// Its id.
    pub id: Cow<'a, str>,
    /// Its position.
    pub seq: u64,
    /// The topic held this id already.
    pub duplicate: bool,
}

/// Something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFrame<'a> {
    /// Of the frame that it answers.
    pub corr: Option<Cow<'a, str>>,
    /// The code, for a newer server may know more of them.
    pub code: Cow<'a, str>,
    /// What is wrong, for people.
    pub message: Cow<'a, str>,
    /// What more is known of it.
    pub details: ErrorDetails,
}

/// What programs may want to know of an error beside its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorDetails {
    /// When to come again.
    pub retry_after_ms: Option<u64>,
    /// The position that was found where another was expected.
    pub actual: Option<u64>,
}

/// Appends an OK.
pub fn write_ok(out: &mut Vec<u8>, corr: Option<&str>) {
    out.extend_from_slice(b"{\"op\":\"OK\"");
    write_corr(out, corr);
    out.push(b'}');
}

/// Appends the OK of a PUBLISH.
pub fn write_published(
    out: &mut Vec<u8>,
    id: &str,
    (seq, ts): (u64, u64),
    duplicate: bool,
    corr: Option<&str>,
) {
    out.extend_from_slice(b"{\"op\":\"OK\"");
    write_corr(out, corr);
    out.extend_from_slice(b",\"id\":");
    write_text(out, id);
    out.extend_from_slice(b",\"seq\":");
    write_number(out, seq);
    out.extend_from_slice(b",\"ts\":");
    write_number(out, ts);
    if duplicate {
        out.extend_from_slice(b",\"duplicate\":true");
    }
    out.push(b'}');
}

/// Appends the OK of a PUBLISH whose event is to be published later.
pub fn write_scheduled(out: &mut Vec<u8>, id: &str, due: u64, duplicate: bool, corr: Option<&str>) {
    ObjectWriter::new(out)
        .field("op", "OK")
        .field("corr", &corr)
        .field("id", id)
        .field("scheduled", &true)
        .field("due", &due)
        .field("duplicate", &duplicate)
        .end();
}

/// Appends the OK of a SUBSCRIBE, which names the group.
pub fn write_subscribed(out: &mut Vec<u8>, group: &str, corr: Option<&str>) {
    ObjectWriter::new(out)
        .field("op", "OK")
        .field("corr", &corr)
        .field("group", group)
        .end();
}

/// Appends the OK of an ACK that published atomically with it.
pub fn write_ack_published(
    out: &mut Vec<u8>,
    published: &[PublishedFrame<'_>],
    corr: Option<&str>,
) {
    out.extend_from_slice(b"{\"op\":\"OK\"");
    write_corr(out, corr);
    write_published_with(out, published);
    out.push(b'}');
}

/// Appends the OK of a PUBLISH with `also_publish`.
pub fn write_also_published(
    out: &mut Vec<u8>,
    id: &str,
    (seq, ts): (u64, u64),
    duplicate: bool,
    also: &[PublishedFrame<'_>],
    corr: Option<&str>,
) {
    write_published(out, id, (seq, ts), duplicate, corr);
    let brace = out.pop();
    debug_assert_eq!(brace, Some(b'}'), "a frame is an object");
    write_published_with(out, also);
    out.push(b'}');
}

fn write_published_with(out: &mut Vec<u8>, published: &[PublishedFrame<'_>]) {
    out.extend_from_slice(b",\"published\":");
    write_list(out, published, |out, event| {
        out.extend_from_slice(b"{\"topic\":");
        write_text(out, &event.topic);
        out.extend_from_slice(b",\"id\":");
        write_text(out, &event.id);
        out.extend_from_slice(b",\"seq\":");
        write_number(out, event.seq);
        if event.duplicate {
            out.extend_from_slice(b",\"duplicate\":true");
        }
        out.push(b'}');
    });
}

/// Appends an ERR.
pub fn write_error(
    out: &mut Vec<u8>,
    code: Code,
    message: &str,
    corr: Option<&str>,
    details: ErrorDetails,
) {
    ObjectWriter::new(out)
        .field("op", "ERR")
        .field("code", code.as_str())
        .field("msg", message)
        .field("corr", &corr)
        .field("retry_after_ms", &details.retry_after_ms)
        .field("actual", &details.actual)
        .end();
}

fn write_corr(out: &mut Vec<u8>, corr: Option<&str>) {
    if let Some(corr) = corr {
        out.extend_from_slice(b",\"corr\":");
        write_text(out, corr);
    }
}

impl ErrorFrame<'_> {
    /// The code, where it is one that this version knows.
    pub fn known_code(&self) -> Option<Code> {
        Code::parse(&self.code)
    }
}

impl<'a> OkFrame<'a> {
    #[inline]
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut ok = Self::default();
        scanner.object(|scanner, name| match name {
            "corr" => scanner.fill(&mut ok.corr),
            "id" => scanner.fill(&mut ok.id),
            "seq" => scanner.fill(&mut ok.seq),
            "ts" => scanner.fill(&mut ok.ts),
            "duplicate" => scanner.fill(&mut ok.duplicate),
            "scheduled" => scanner.fill(&mut ok.scheduled),
            "due" => scanner.fill(&mut ok.due),
            "group" => scanner.fill(&mut ok.group),
            "published" => scanner.fill(&mut ok.published),
            _ => scanner.ignore(),
        })?;
        Ok(ok)
    }
}

impl<'a> FromJson<'a> for PublishedFrame<'a> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut topic, mut id, mut seq) = (None, None, None);
        let mut duplicate = false;
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "id" => scanner.fill(&mut id),
            "seq" => scanner.fill(&mut seq),
            "duplicate" => scanner.fill(&mut duplicate),
            _ => scanner.ignore(),
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            id: required(id, "id")?,
            seq: required(seq, "seq")?,
            duplicate,
        })
    }
}

impl<'a> ErrorFrame<'a> {
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (mut corr, mut code) = (None, None);
        let (mut message, mut details) = (None, ErrorDetails::default());
        scanner.object(|scanner, name| match name {
            "corr" => scanner.fill(&mut corr),
            "code" => scanner.fill(&mut code),
            "msg" => scanner.fill(&mut message),
            "retry_after_ms" => scanner.fill(&mut details.retry_after_ms),
            "actual" => scanner.fill(&mut details.actual),
            _ => scanner.ignore(),
        })?;
        Ok(Self {
            corr,
            code: required(code, "code")?,
            message: message.unwrap_or_default(),
            details,
        })
    }
}
