//! `group shadow`: a throwaway group on real traffic.

use super::{GroupArgs, print};
use crate::commands::position::PositionArgs;
use crate::output::{self, Format};
use crate::remote::Remote;
use anyhow::anyhow;
use clap::Args;
use prombus_api::http::{Age, Body, Pace, Shadow as ShadowBody, ShadowReply};
use ureq::http::Method;

#[derive(Debug, Args)]
pub(super) struct Shadow {
    #[command(flatten)]
    group: GroupArgs,
    #[command(flatten)]
    position: PositionArgs,
    /// The last position that it is fed; without it it follows the topic
    #[arg(long, value_name = "SEQ")]
    to: Option<u64>,
    /// How fast it is fed: `original`, `max`, or how much faster than the original
    #[arg(long, value_parser = parse_pace)]
    pace: Option<Pace>,
    /// After how long it is gone: 30m, 2h
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    ttl: Option<Age>,
}

impl Shadow {
    pub(super) fn run(&self, remote: &Remote, format: Format) -> anyhow::Result<()> {
        let body = ShadowBody {
            topic: self.group.topic.clone(),
            group: self.group.group.clone(),
            start: self.position.resolve()?,
            to: self.to,
            pace: self.pace,
            ttl: self.ttl,
        };
        let reply = remote.send(Method::POST, "/groups/shadow", &body.to_json())?;
        print(&reply, format, |reply: ShadowReply| print_shadow(&reply))
    }
}

/// The name alone on stdout, so that a script can subscribe with it.
fn print_shadow(reply: &ShadowReply) -> anyhow::Result<()> {
    let to = reply.to_seq.map(|seq| format!(" to {seq}"));
    output::notice(format_args!(
        "fed from {}{} of {}; gone when its last member leaves, or after {}",
        reply.from_seq,
        to.unwrap_or_default(),
        reply.topic,
        Age { ms: reply.ttl_ms }
    ));
    output::line(&reply.group)
}

fn parse_pace(text: &str) -> anyhow::Result<Pace> {
    match text {
        "original" => Ok(Pace::Original),
        "max" => Ok(Pace::Max),
        factor => match factor.parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(Pace::Times(factor)),
            _ => Err(anyhow!("expected original, max or a number above 0")),
        },
    }
}

fn parse_age(text: &str) -> anyhow::Result<Age> {
    Age::parse(text).ok_or_else(|| anyhow!("expected a number with s, m, h or d, as 30m"))
}
