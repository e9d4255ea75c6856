//! Publishing through the bus: in memory, and to files with `os` durability beside a loop that checksums and writes the
//! same bytes.

use crate::Outcome;
use crate::bus_work::{file_bus, memory_bus, publish, run as run_on, runtime};
use crate::folder::remove;
use crate::log_work::{BATCH_EVENTS, STORED_BYTES, payloads, per_second, topic_at};
use crate::plain::{self, Records};
use crate::report::{Goal, Line, Unit};
use crate::sampling::{in_turns, repeat};
use crate::table::Bench;
use prombus::Bus;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Runtime;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let (payloads, scale) = (Arc::new(payloads()), &bench.scale);
    let records = Records::new(&payloads)?;
    let runtime = runtime()?;
    let folder = RefCell::new(&mut bench.folder);
    let events = scale.events;

    let in_memory = repeat(scale.repeats, || {
        let _guard = runtime.enter();
        published(&runtime, memory_bus(4 << 30)?, &payloads, events)
    })?;
    let to_files = || {
        folder.borrow_mut().warm(events * STORED_BYTES)?;
        let path = folder.borrow_mut().fresh("publish");
        let bus = {
            let _guard = runtime.enter();
            file_bus(&path, scale)?
        };
        let rate = published(&runtime, bus, &payloads, events)?;
        remove(&path)?;
        Ok(rate)
    };
    let plainly = || {
        folder.borrow_mut().warm(events * STORED_BYTES)?;
        let path = folder.borrow_mut().fresh("plain");
        let appended = plain::append(&path, &records, events / BATCH_EVENTS)?;
        remove(&path)?;
        Ok(appended.written)
    };
    let (measured, beside) = in_turns(scale.repeats, to_files, plainly)?;
    let memory = "bus publish_batch of 1,000, memory:";
    let file = "bus publish_batch of 1,000, file: with os";
    Ok(vec![
        Line::new(memory, Unit::EventsPerSecond, in_memory).goal(Goal::AtLeast(1_500_000.0)),
        Line::new(file, Unit::EventsPerSecond, measured)
            .beside("plain checksum and write", beside)
            .goal(Goal::RatioAtLeast(0.5)),
    ])
}

/// Publishes the events to a new topic and closes the bus; events per second of the publishing alone.
fn published(
    runtime: &Runtime,
    bus: Bus,
    payloads: &Arc<Vec<String>>,
    events: u64,
) -> Outcome<f64> {
    let payloads = payloads.clone();
    run_on(runtime, async move {
        let topics = [topic_at(0)];
        publish(&bus, &topics, &payloads, BATCH_EVENTS).await?;
        let started = Instant::now();
        publish(&bus, &topics, &payloads, events).await?;
        let rate = per_second(events, started);
        bus.close().await?;
        Ok(rate)
    })
}
