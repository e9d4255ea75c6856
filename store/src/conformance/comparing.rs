//! Every way of reading a topic, with random arguments, against the events it should give.

use super::Harness;
use super::Random;
use super::case::{Case, START_MS, at_most};
use super::oracle::{OracleEvent, check};
use crate::{ReadFrom, ReadLimit, StoredEvent, TimeRange};
use std::sync::Arc;

/// The keys that random events have.
pub(super) const KEYS: [&str; 6] = ["", "k", "k/1", "k/2", "l\"\\", "ü"];

/// Reads a topic by position, time, id and key; `kept` is what it should hold, in the order of positions.
pub(super) async fn compare_reads<H: Harness>(
    case: &Case<'_, H>,
    topic: &Arc<str>,
    kept: &[OracleEvent],
    random: &mut Random,
) -> Result<(), String> {
    let limit = ReadLimit {
        events: *random.pick(&[1, 3, 50, 100_000]),
        bytes: *random.pick(&[1, 1000, 1 << 20]),
    };
    let somewhere = random.below(case.info(topic).tail_seq + 3);
    let from_seq = *random.pick(&[0, somewhere]);
    let read = case.pages(topic, from_seq, limit).await;
    let behind = kept.iter().filter(|event| event.seq >= from_seq);
    same(&read, behind, || format!("from {from_seq} by {limit:?}"))?;

    compare_times(case, topic, kept, limit, random).await?;
    if !kept.is_empty() {
        let event = random.pick(kept);
        let found = case.find_id(topic, &event.id).await;
        check(found == Some(event.seq), || {
            format!("{event:?} was found at {found:?}")
        })?;
    }
    compare_keys(case, topic, kept, random).await
}

async fn compare_times<H: Harness>(
    case: &Case<'_, H>,
    topic: &Arc<str>,
    kept: &[OracleEvent],
    limit: ReadLimit,
    random: &mut Random,
) -> Result<(), String> {
    // That of some event, or around the times that random events bring.
    let ts = if kept.is_empty() || random.percent(50) {
        START_MS - 60 + random.below(200)
    } else {
        random.pick(kept).ts
    };
    let range = TimeRange {
        from_ts: *random.pick(&[0, ts]),
        to_ts: *random.pick(&[ts, ts + 20, u64::MAX]),
        after: None,
    };
    let mut within: Vec<&OracleEvent> = kept.iter().collect();
    within.retain(|event| (range.from_ts..=range.to_ts).contains(&event.ts));
    within.sort_by_key(|event| (event.ts, event.seq));
    let read = case.pages_by_time(topic, range, limit).await;
    same(&read, within, || format!("in {range:?} by {limit:?}"))?;

    let found = case.find_ts(topic, ts).await;
    let first = kept.iter().find(|event| event.ts >= ts);
    check(found == first.map(|event| event.seq), || {
        format!("since {ts}: {found:?}")
    })
}

async fn compare_keys<H: Harness>(
    case: &Case<'_, H>,
    topic: &Arc<str>,
    kept: &[OracleEvent],
    random: &mut Random,
) -> Result<(), String> {
    let latest_of = |key: &str| kept.iter().rfind(|event| event.key.as_deref() == Some(key));
    for key in KEYS {
        let found = case.latest_seq(topic, key).await;
        let expected = latest_of(key).map(|event| event.seq);
        check(found == expected, || {
            format!("the latest of {key:?} is {found:?}, not {expected:?}")
        })?;
    }
    compare_past(case, topic, kept, random).await?;
    let after = *random.pick(&KEYS);
    let after = random.percent(70).then_some(after);
    let limit = at_most(1 + random.below(6) as usize);
    let mut keys = KEYS.to_vec();
    keys.sort_unstable();
    let behind = keys
        .into_iter()
        .filter(|key| after.is_none_or(|after| *key > after));
    let expected = behind.filter_map(latest_of).take(limit.events);
    let found = case.store.read(topic, ReadFrom::Key(after), limit).await;
    let found = found.map_err(|error| error.to_string())?;
    same(&found.events, expected, || {
        format!("{limit:?} of the keys behind {after:?}")
    })
}

/// What is kept of each key as of the time of some event.
async fn compare_past<H: Harness>(
    case: &Case<'_, H>,
    topic: &Arc<str>,
    kept: &[OracleEvent],
    random: &mut Random,
) -> Result<(), String> {
    let at_ts = if kept.is_empty() || random.percent(20) {
        START_MS - 60 + random.below(200)
    } else {
        random.pick(kept).ts
    };
    let keys: Vec<String> = KEYS.iter().map(|key| (*key).to_owned()).collect();
    let past = case.store.latest(topic, keys, Some(at_ts)).await;
    let past = past.map_err(|error| error.to_string())?;
    let info = case.info(topic);
    let has_all = info.tail_seq + 1 - info.first_seq == kept.len() as u64;
    for (key, past) in KEYS.iter().zip(past) {
        let is_it = |event: &&OracleEvent| event.key.as_deref() == Some(*key) && event.ts <= at_ts;
        let expected = kept.iter().rfind(is_it).map(|event| event.seq);
        let found = past.event.as_ref().map(StoredEvent::seq);
        check(found == expected, || {
            format!("{key:?} at {at_ts} is {found:?}, not {expected:?}")
        })?;
        check(past.is_certain || !has_all, || {
            format!("{key:?} at {at_ts} is certain, for all is kept")
        })?;
    }
    Ok(())
}

/// What was read is what was expected.
fn same<'a>(
    read: &[StoredEvent],
    expected: impl IntoIterator<Item = &'a OracleEvent>,
    how: impl FnOnce() -> String,
) -> Result<(), String> {
    let read: Vec<OracleEvent> = read.iter().map(OracleEvent::from).collect();
    let expected: Vec<&OracleEvent> = expected.into_iter().collect();
    let differ = read
        .iter()
        .zip(&expected)
        .position(|(one, other)| one != *other);
    let at = differ.unwrap_or(read.len().min(expected.len()));
    let (found, wanted) = (read.get(at), expected.get(at));
    check(found.is_none() && wanted.is_none(), || {
        format!("{}: event {at} is {found:?}, not {wanted:?}", how())
    })
}
