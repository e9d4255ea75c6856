//! Frames that only name a subscription: UNSUBSCRIBE, PAUSE and RESUME.

use super::required;
use crate::scan::{ScanError, Scanner};
use crate::write::ObjectWriter;
use std::borrow::Cow;

/// The subscription that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupName<'a> {
    /// The topic as it stood in SUBSCRIBE.
    pub topic: Cow<'a, str>,
    /// The group.
    pub group: Cow<'a, str>,
}

/// Appends an UNSUBSCRIBE frame.
pub fn write_unsubscribe(out: &mut Vec<u8>, topic: &str, group: &str, corr: Option<&str>) {
    write_named(out, "UNSUBSCRIBE", topic, group, corr);
}

/// Appends a PAUSE frame.
pub fn write_pause(out: &mut Vec<u8>, topic: &str, group: &str, corr: Option<&str>) {
    write_named(out, "PAUSE", topic, group, corr);
}

/// Appends a RESUME frame.
pub fn write_resume(out: &mut Vec<u8>, topic: &str, group: &str, corr: Option<&str>) {
    write_named(out, "RESUME", topic, group, corr);
}

fn write_named(out: &mut Vec<u8>, op: &str, topic: &str, group: &str, corr: Option<&str>) {
    ObjectWriter::new(out)
        .field("op", op)
        .field("topic", topic)
        .field("group", group)
        .field("corr", &corr)
        .end();
}

impl<'a> GroupName<'a> {
    pub(super) fn read(
        scanner: &mut Scanner<'a>,
        corr: &mut Option<Cow<'a, str>>,
    ) -> Result<Self, ScanError> {
        let mut topic = None;
        let mut group = None;
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            "corr" => scanner.fill(corr),
            "op" => scanner.ignore(),
            _ => Err(ScanError::unknown(name, &["topic", "group", "corr"], &[])),
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group: required(group, "group")?,
        })
    }
}
