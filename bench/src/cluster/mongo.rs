//! Single events with a thousand in flight on a node in MongoDB, beside one insert for each.

use super::nodes::{make_topic, open, publish, take_one};
use super::runtime;
use super::servers::MongoServer;
use crate::Outcome;
use crate::log_work::payloads;
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use mongodb::bson::{Document, doc};
use mongodb::options::{CollectionOptions, WriteConcern};
use mongodb::{Client, Collection};
use prombus_replicated::Options;
use prombus_replicated::mongo::MongoLog;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

const IN_FLIGHT: usize = 1_000;
/// As many as a server's clients usually have connections.
const INSERTS_IN_FLIGHT: usize = 16;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let folder = bench.folder.fresh("mongo");
    let server = MongoServer::start(&folder.join("server"))?;
    let payload = payloads().swap_remove(0);
    let (events, inserts) = (bench.scale.mongo_events, bench.scale.mongo_inserts);
    let (node, collection) = runtime.block_on(async {
        let log = MongoLog::open(&server.url).await?;
        let options = Options {
            // A slow stand-in is no outage.
            patience: Duration::from_secs(60),
            ..Options::default()
        };
        let node = open(Arc::new(log), &folder.join("copy"), options).await?;
        make_topic(&*node).await?;
        let client = Client::with_uri_str(&server.url).await?;
        let durable = CollectionOptions::builder()
            .write_concern(WriteConcern::majority())
            .build();
        let database = client.database("bench");
        let collection = database.collection_with_options::<Document>("singly", durable);
        Outcome::Ok((node, collection))
    })?;
    let nodes = [node];
    let (measured, beside) = in_turns(
        bench.scale.repeats.min(2),
        || runtime.block_on(publish(&nodes, IN_FLIGHT, events, &payload)),
        || runtime.block_on(singly(&collection, inserts, &payload)),
    )?;
    drop(nodes);
    drop(server);
    crate::folder::remove(&folder)?;
    let what = format!("1 node in MongoDB, {IN_FLIGHT} in flight");
    Ok(vec![
        Line::new(what, Unit::EventsPerSecond, measured)
            .beside("an insert for each", beside)
            .goal(Goal::RatioAtLeast(20.0)),
    ])
}

async fn singly(collection: &Collection<Document>, events: u64, payload: &str) -> Outcome<f64> {
    let left = Arc::new(AtomicU64::new(events));
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..INSERTS_IN_FLIGHT {
        let (collection, left) = (collection.clone(), left.clone());
        let payload = payload.to_owned();
        tasks.push(tokio::spawn(async move {
            while take_one(&left) {
                collection.insert_one(doc! { "payload": &payload }).await?;
            }
            Ok::<(), mongodb::error::Error>(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(events as f64 / started.elapsed().as_secs_f64())
}
