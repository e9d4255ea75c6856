//! Connections that are subscribed and wait, each with a group of its own.

use super::{Served, runtime};
use crate::Outcome;
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_client::SubscribeOptions;

const MAX_BYTES: f64 = 150e6;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let folder = bench.folder.fresh("idle");
    let served = Served::start(&folder)?;
    let connections = bench.scale.idle_connections;
    let bytes = runtime()?.block_on(async {
        served.make_topic("quiet").await?;
        let mut waiting = Vec::with_capacity(connections);
        for number in 0..connections {
            let client = served.connect().await?;
            let group = format!("group-{number}");
            let options = SubscribeOptions::default();
            waiting.push((client.subscribe("quiet", &group, options).await?, client));
        }
        served.process.resident_bytes()
    })?;
    let what = format!("resident with {connections} idle subscribed connections");
    let samples = Samples::from_iter([bytes as f64]);
    let line = Line::new(what, Unit::Bytes, samples).goal(Goal::AtMost(MAX_BYTES));
    Ok(vec![line])
}
