//! The flags that name a place in a topic.

use crate::when;
use anyhow::bail;
use clap::Args;
use prombus_api::options::Position;

/// Where to begin; at most one of these.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// Begin at `earliest` or `latest`, or at a time
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    from: Option<String>,
    /// Begin behind the event with this id
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    after_id: Option<String>,
    /// Begin at this position
    #[arg(long, conflicts_with_all = ["from", "after_id"])]
    seq: Option<u64>,
}

impl PlaceArgs {
    /// The place, where one was named.
    pub(super) fn position(&self) -> anyhow::Result<Option<Position>> {
        if let Some(id) = &self.after_id {
            return Ok(Some(Position::AfterId(id.clone())));
        }
        if let Some(seq) = self.seq {
            return Ok(Some(Position::Seq(seq)));
        }
        let Some(from) = &self.from else {
            return Ok(None);
        };
        Ok(Some(match from.as_str() {
            "earliest" => Position::Earliest,
            "latest" => Position::Latest,
            text => match when::parse(text) {
                Ok(ts) => Position::Ts(ts),
                Err(why) => bail!("--from {text}: neither earliest nor latest, and {why}"),
            },
        }))
    }
}
