//! Frames about the partitions of a subscription: ASSIGN and REVOKE from a server, and REVOKED, by which a client says that
//! it is done with what was revoked.

use super::required;
use crate::scan::{ScanError, Scanner};
use crate::write::ObjectWriter;
use std::borrow::Cow;

/// Partitions of a topic that a group's members share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions<'a> {
    /// The topic.
    pub topic: Cow<'a, str>,
    /// The group.
    pub group: Cow<'a, str>,
    /// Their numbers, from 0.
    pub partitions: Vec<u32>,
}

/// Appends an ASSIGN frame.
pub fn write_assign(out: &mut Vec<u8>, partitions: &Partitions<'_>) {
    write_partitions(out, "ASSIGN", partitions, None);
}

/// Appends a REVOKE frame.
pub fn write_revoke(out: &mut Vec<u8>, partitions: &Partitions<'_>) {
    write_partitions(out, "REVOKE", partitions, None);
}

/// Appends a REVOKED frame.
pub fn write_revoked(out: &mut Vec<u8>, partitions: &Partitions<'_>, corr: Option<&str>) {
    write_partitions(out, "REVOKED", partitions, corr);
}

fn write_partitions(out: &mut Vec<u8>, op: &str, partitions: &Partitions<'_>, corr: Option<&str>) {
    ObjectWriter::new(out)
        .field("op", op)
        .field("topic", &partitions.topic)
        .field("group", &partitions.group)
        .field("partitions", &partitions.partitions)
        .field("corr", &corr)
        .end();
}

impl<'a> Partitions<'a> {
    pub(super) fn read(
        scanner: &mut Scanner<'a>,
        corr: &mut Option<Cow<'a, str>>,
    ) -> Result<Self, ScanError> {
        let (mut topic, mut group, mut partitions) = (None, None, None);
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            "partitions" => scanner.fill(&mut partitions),
            "corr" => scanner.fill(corr),
            "op" => scanner.ignore(),
            _ => {
                let known = ["topic", "group", "partitions", "corr"];
                Err(ScanError::unknown(name, &known, &[]))
            }
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group: required(group, "group")?,
            partitions: required(partitions, "partitions")?,
        })
    }
}
