//! The flags that name a position in a topic.

use crate::time;
use anyhow::bail;
use clap::Args;
use prombus::StartAt;

/// Where to begin; at most one of these.
#[derive(Debug, Args)]
pub(super) struct PositionArgs {
    /// Begin at `earliest` or `latest`, or at a time: 2026-11-15, 2026-11-15T12:00:00Z, epoch ms, or -1h
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    from: Option<String>,
    /// Begin after the event with this id
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    after_id: Option<String>,
    /// Begin at this sequence number
    #[arg(long, conflicts_with_all = ["from", "after_id"])]
    seq: Option<u64>,
}

impl PositionArgs {
    /// The position, where one was given.
    pub(super) fn resolve(&self) -> anyhow::Result<Option<StartAt>> {
        if let Some(id) = &self.after_id {
            return Ok(Some(StartAt::AfterId(id.clone())));
        }
        if let Some(seq) = self.seq {
            return Ok(Some(StartAt::Seq(seq)));
        }
        let Some(from) = &self.from else {
            return Ok(None);
        };
        Ok(Some(match from.as_str() {
            "earliest" => StartAt::Earliest,
            "latest" => StartAt::Latest,
            text => match time::parse(text) {
                Ok(ts) => StartAt::Ts(ts),
                Err(why) => {
                    bail!("invalid --from {text:?}: neither earliest nor latest, and {why}")
                }
            },
        }))
    }
}
