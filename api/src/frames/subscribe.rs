//! SUBSCRIBE: events of a topic, or of a pattern of topics, through a group.

use super::required;
use crate::options::SubscribeOptions;
use crate::scan::{ScanError, Scanner};
use crate::write::ObjectWriter;
use std::borrow::Cow;

/// A subscription that is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// A topic or a pattern.
    pub topic: Cow<'a, str>,
    /// The group; without one an ephemeral group is made, and the OK names it.
    pub group: Option<Cow<'a, str>>,
    /// The options. In a box, for subscribing is rare and frames are many.
    pub options: Box<SubscribeOptions>,
}

/// Appends a SUBSCRIBE frame.
pub fn write_subscribe(out: &mut Vec<u8>, subscribe: &Subscribe<'_>, corr: Option<&str>) {
    ObjectWriter::new(out)
        .field("op", "SUBSCRIBE")
        .field("topic", &subscribe.topic)
        .field("group", &subscribe.group)
        .field("opts", &*subscribe.options)
        .field("corr", &corr)
        .end();
}

impl<'a> Subscribe<'a> {
    pub(super) fn read(
        scanner: &mut Scanner<'a>,
        corr: &mut Option<Cow<'a, str>>,
    ) -> Result<Self, ScanError> {
        let mut topic = None;
        let mut group = None;
        let mut options = Box::<SubscribeOptions>::default();
        scanner.object(|scanner, name| match name {
            "topic" => scanner.fill(&mut topic),
            "group" => scanner.fill(&mut group),
            "opts" => scanner.fill(&mut *options),
            "corr" => scanner.fill(corr),
            "op" => scanner.ignore(),
            _ => {
                let known = ["topic", "group", "opts", "corr"];
                Err(ScanError::unknown(name, &known, SubscribeOptions::FIELDS))
            }
        })?;
        Ok(Self {
            topic: required(topic, "topic")?,
            group,
            options,
        })
    }
}
