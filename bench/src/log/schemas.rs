//! What a schema costs a publisher: holding a payload against it beside publishing the payload, and publishing to a topic
//! with a schema beside one without.

use crate::Outcome;
use crate::bus_work::{file_bus, publish, run as run_on, runtime};
use crate::folder::remove;
use crate::log_work::{BATCH_EVENTS, STORED_BYTES, nanos_each, payloads, topic_at};
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use prombus::{Bus, RegisterSchema};
use prombus_schema::{Schema, Validator};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;

/// What the payloads are, closed and with a range, a pattern and a length, as people write schemas.
const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "pid": {"type": "integer", "minimum": 0},
    "name": {"type": "string", "pattern": "^[a-z-]+[0-9]*$"},
    "host": {"type": "string", "maxLength": 64},
    "cpu_pct": {"type": "number", "minimum": 0},
    "mem_mb": {"type": "number", "minimum": 0},
    "note": {"type": "string"}
  },
  "required": ["pid"]
}"#;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let (payloads, scale) = (Arc::new(payloads()), &bench.scale);
    let runtime = runtime()?;
    let folder = RefCell::new(&mut bench.folder);
    let events = scale.events;
    let validator = Validator::new(&Schema::parse(SCHEMA)?)?;
    let checked = || {
        let started = Instant::now();
        for _ in 0..events / BATCH_EVENTS {
            for payload in &*payloads {
                validator.check(payload)?;
            }
        }
        Ok(nanos_each(events, started))
    };
    let published = |schema: Option<&'static str>| {
        folder.borrow_mut().warm(events * STORED_BYTES)?;
        let path = folder.borrow_mut().fresh("schemas");
        let bus = {
            let _guard = runtime.enter();
            file_bus(&path, scale)?
        };
        let nanos = measured(&runtime, bus, &payloads, events, schema)?;
        remove(&path)?;
        Ok(nanos)
    };
    let (check, beside) = in_turns(scale.repeats, checked, || published(None))?;
    let (with, without) = in_turns(
        scale.repeats,
        || published(Some(SCHEMA)),
        || published(None),
    )?;
    let validate = "hold a payload of 256 bytes against a schema";
    let publish = "publish_batch of 1,000, file: with os, with a schema";
    Ok(vec![
        Line::new(validate, Unit::NanosPerEvent, check)
            .beside("publishing it", beside)
            .goal(Goal::RatioAtMost(0.5)),
        Line::new(publish, Unit::NanosPerEvent, with)
            .beside("without", without)
            .goal(Goal::RatioAtMost(1.5)),
    ])
}

/// Nanoseconds of publishing one event.
fn measured(
    runtime: &Runtime,
    bus: Bus,
    payloads: &Arc<Vec<String>>,
    events: u64,
    schema: Option<&'static str>,
) -> Outcome<f64> {
    let payloads = payloads.clone();
    run_on(runtime, async move {
        let topics = [topic_at(0)];
        if let Some(schema) = schema {
            let options = RegisterSchema::default();
            bus.register_schema(&topics[0], schema, options).await?;
        }
        publish(&bus, &topics, &payloads, BATCH_EVENTS).await?;
        let started = Instant::now();
        publish(&bus, &topics, &payloads, events).await?;
        let nanos = nanos_each(events, started);
        bus.close().await?;
        Ok(nanos)
    })
}
