//! Very many groups: how long a scrape of the metrics takes, and whether a publisher notices them.

use super::{Served, runtime};
use crate::Outcome;
use crate::http;
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_client::{Client, PublishOptions, SubscribeOptions, Subscription};
use std::time::Instant;

/// As many subscriptions as a connection may have.
const GROUPS_OF_A_CONNECTION: usize = 1_000;
/// Groups that share a topic.
const GROUPS_OF_A_TOPIC: usize = 100;
const MAX_SCRAPE_MS: f64 = 200.0;
const MAX_P99_RATIO: f64 = 2.0;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let full = Served::start(&bench.folder.fresh("groups-many"))?;
    let empty = Served::start(&bench.folder.fresh("groups-none"))?;
    let groups = bench.scale.many_groups;
    let publishes = bench.scale.scraped_publishes;
    let runtime = runtime()?;
    let _members = runtime.block_on(subscribe(&full, groups))?;
    let mut scrapes = Samples::default();
    let (mut with, mut without) = (Samples::default(), Samples::default());
    for round in 0..=bench.scale.repeats {
        let (scrape_ms, with_ms) = runtime.block_on(publish_and_scrape(&full, publishes))?;
        let (_, without_ms) = runtime.block_on(publish_and_scrape(&empty, publishes))?;
        // The first round pays for what is used for the first time.
        if round > 0 {
            scrapes.push(scrape_ms);
            with.push(with_ms);
            without.push(without_ms);
        }
    }
    Ok(vec![
        Line::new(
            format!("/metrics with {groups} groups"),
            Unit::Millis,
            scrapes,
        )
        .goal(Goal::AtMost(MAX_SCRAPE_MS)),
        Line::new(
            format!("publish p99 with {groups} groups, scraped meanwhile"),
            Unit::Millis,
            with,
        )
        .beside("with none", without)
        .goal(Goal::RatioAtMost(MAX_P99_RATIO)),
    ])
}

/// Makes the groups, with a member each.
async fn subscribe(served: &Served, groups: usize) -> Outcome<Vec<(Client, Vec<Subscription>)>> {
    let mut members = Vec::new();
    for first in (0..groups).step_by(GROUPS_OF_A_CONNECTION) {
        let client = served.connect().await?;
        let mut subscriptions = Vec::new();
        for group in first..groups.min(first + GROUPS_OF_A_CONNECTION) {
            let topic = format!("many.t{}", group / GROUPS_OF_A_TOPIC);
            let name = format!("g{group}");
            let options = SubscribeOptions::default();
            subscriptions.push(client.subscribe(&topic, &name, options).await?);
        }
        members.push((client, subscriptions));
    }
    Ok(members)
}

/// Milliseconds of a scrape, and of the 99th of a hundred publishes that each wait for the one before.
async fn publish_and_scrape(served: &Served, publishes: usize) -> Outcome<(f64, f64)> {
    served.make_topic("probe").await?;
    let client = served.connect().await?;
    let scraping = async {
        let begun = Instant::now();
        http::ask(served.address, "GET /metrics", "").await?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    };
    let publishing = async {
        let mut millis = Vec::with_capacity(publishes);
        for _ in 0..publishes {
            let begun = Instant::now();
            client
                .publish_text("probe", "1", &PublishOptions::default())
                .await?;
            millis.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        millis.sort_by(f64::total_cmp);
        Ok(millis[millis.len() * 99 / 100])
    };
    let (scraped, published): (Outcome<f64>, Outcome<f64>) = tokio::join!(scraping, publishing);
    Ok((scraped?, published?))
}
