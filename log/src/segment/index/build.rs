//! Building an index from a segment's events, in the order they lie in it.

use super::{IdPrefix, Index, IndexFor, Point, RunInfo, SECTIONS, directory, prefix_of};
use crate::names::{self, NameEntry, NameRef};
use crate::record::StoredEvent;
use crate::segment::stream::StreamEntry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Name spaces of the name table.
pub(crate) const OWN_ID_SPACE: u8 = 0;
pub(crate) const KEY_SPACE: u8 = 1;

/// A reader that wants one event reads at most this much before it.
const POINT_EVERY_BYTES: u32 = 16 << 10;

/// Collects what the index of one segment says.
#[derive(Default)]
pub(crate) struct IndexBuilder {
    runs: BTreeMap<u32, RunBuilder>,
    own_ids: Vec<OwnIdName>,
    /// The text of all own ids, one behind the other: there may be one for each event.
    own_id_text: Vec<u8>,
    /// When the segment was made: no event in it that does not say is known to be stored later.
    created_ms: u64,
}

/// An own id of a topic, and where its text lies.
struct OwnIdName {
    topic: u32,
    text: Range<u32>,
    entry: NameEntry,
}

struct RunBuilder {
    name: Arc<str>,
    info: RunInfo,
    points: Vec<Point>,
    /// Every event, kept only until it is known that the run needs no order of its own.
    events: Vec<Point>,
    keys: HashMap<Box<str>, (NameEntry, bool)>,
}

impl IndexBuilder {
    /// For a segment that was made at `created_ms`.
    pub(crate) fn new(created_ms: u64) -> Self {
        Self {
            created_ms,
            ..Self::default()
        }
    }

    /// Takes in the event whose record lies at `offset`. A topic's events come in the order of positions.
    pub(crate) fn add(&mut self, offset: u32, event: &StoredEvent) {
        let topic = event.topic_number();
        let entry = StreamEntry {
            seq: event.seq(),
            ts: event.ts(),
            offset,
            bytes: event.stored_bytes() as u32,
        };
        let run = self
            .runs
            .entry(topic)
            .or_insert_with(|| RunBuilder::new(topic, event.topic().into(), &entry));
        run.add(&entry, event.stored_ms().unwrap_or(self.created_ms));
        run.events.push(Point::of(&entry));
        let name = NameEntry {
            seq: entry.seq,
            offset,
        };
        if let Some(key) = event.key() {
            run.add_key(&key, name, event.is_tombstone());
        }
        if event.has_own_id() {
            let prefix = prefix_of(event.id().as_bytes());
            run.info.highest_id = run.info.highest_id.max(prefix);
            let start = self.own_id_text.len() as u32;
            self.own_id_text.extend_from_slice(event.id().as_bytes());
            self.own_ids.push(OwnIdName {
                topic,
                text: start..self.own_id_text.len() as u32,
                entry: name,
            });
        }
    }

    /// Takes in all events of a topic that has no keys, no own ids and no ts but those the log gave.
    pub(crate) fn add_nameless(&mut self, topic: u32, name: &Arc<str>, entries: &[StreamEntry]) {
        let Some(first) = entries.first() else {
            return;
        };
        let mut run = RunBuilder::new(topic, name.clone(), first);
        entries.iter().for_each(|entry| run.add(entry, entry.ts));
        if !run.info.ordered {
            run.events = entries.iter().map(Point::of).collect();
        }
        self.runs.insert(topic, run);
    }

    /// Whether no event was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The index file, with a copy of the checkpoint that follows the segment.
    pub(crate) fn finish(self, owner: IndexFor, checkpoint: Vec<u8>) -> Vec<u8> {
        let mut sections: [Vec<u8>; SECTIONS] = Default::default();
        let mut keys = Vec::new();
        let (mut points, mut order) = (0, 0);
        let mut runs = Vec::with_capacity(self.runs.len());
        for (topic, mut run) in self.runs {
            run.info.points = points..points + run.points.len() as u32;
            points = run.info.points.end;
            run.points
                .iter()
                .for_each(|point| point.write(&mut sections[1]));
            if run.info.ordered {
                run.events.clear();
            }
            run.events
                .sort_unstable_by_key(|event| (event.ts, event.seq));
            run.info.order = order..order + run.events.len() as u32;
            order = run.info.order.end;
            run.events
                .iter()
                .for_each(|event| event.write(&mut sections[2]));
            let gone = run.keys.values().filter(|(_, tombstone)| *tombstone);
            run.info.tombstones = gone.count() as u64;
            runs.push((run.info, run.name));
            keys.extend(
                run.keys
                    .into_iter()
                    .map(|(key, (entry, _))| (topic, key, entry)),
            );
        }
        sections[0] = directory::write_all(runs.iter().map(|(run, name)| (run, &**name)));
        let mut own_ids = self.own_ids;
        let own_name = |own: &OwnIdName| {
            let text = own.text.start as usize..own.text.end as usize;
            name(OWN_ID_SPACE, own.topic, &self.own_id_text[text])
        };
        // An id that retention let go may have been published again; the newest counts.
        own_ids.sort_unstable_by(|a, b| {
            let newest_first = b.entry.seq.cmp(&a.entry.seq);
            own_name(a).cmp(&own_name(b)).then(newest_first)
        });
        own_ids.dedup_by(|later, earlier| own_name(later) == own_name(earlier));
        keys.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let own_ids = own_ids.iter().map(|own| (own_name(own), own.entry));
        let keys = keys
            .iter()
            .map(|(topic, key, entry)| (name(KEY_SPACE, *topic, key.as_bytes()), *entry));
        let table = names::build(own_ids.chain(keys));
        (sections[3], sections[4], sections[5]) = (table.blocks, table.fences, table.filter);
        sections[6] = checkpoint;
        Index::encode(owner, &sections)
    }
}

impl RunBuilder {
    fn new(topic: u32, name: Arc<str>, first: &StreamEntry) -> Self {
        Self {
            name,
            info: RunInfo {
                topic,
                first_seq: first.seq,
                last_seq: first.seq,
                events: 0,
                bytes: 0,
                min_ts: first.ts,
                max_ts: first.ts,
                ordered: true,
                data: first.offset..first.offset,
                points: 0..0,
                order: 0..0,
                superseded: 0,
                tombstones: 0,
                min_stored_ms: u64::MAX,
                max_stored_ms: 0,
                highest_id: IdPrefix::default(),
            },
            points: Vec::new(),
            events: Vec::new(),
            keys: HashMap::new(),
        }
    }

    fn add(&mut self, entry: &StreamEntry, stored_ms: u64) {
        let info = &mut self.info;
        info.min_stored_ms = info.min_stored_ms.min(stored_ms);
        info.max_stored_ms = info.max_stored_ms.max(stored_ms);
        info.ordered &= entry.ts >= info.max_ts;
        info.last_seq = entry.seq;
        info.events += 1;
        info.bytes += u64::from(entry.bytes);
        info.min_ts = info.min_ts.min(entry.ts);
        info.max_ts = info.max_ts.max(entry.ts);
        info.data.end = entry.offset + entry.bytes;
        let is_due = |last: &Point| entry.offset - last.offset >= POINT_EVERY_BYTES;
        if self.points.last().is_none_or(is_due) {
            self.points.push(Point {
                ts: info.max_ts,
                ..Point::of(entry)
            });
        }
    }

    fn add_key(&mut self, key: &str, name: NameEntry, is_tombstone: bool) {
        let latest = (name, is_tombstone);
        match self.keys.get_mut(key) {
            Some(known) => {
                *known = latest;
                self.info.superseded += 1;
            }
            None => {
                self.keys.insert(key.into(), latest);
            }
        }
    }
}

fn name(space: u8, topic: u32, name: &[u8]) -> NameRef<'_> {
    NameRef { space, topic, name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Draft};
    use crate::event_id::MadeId;

    /// The same index, from the events and from their entries alone.
    fn both_ways(times: &[u64]) -> [Vec<u8>; 2] {
        let topic: Arc<str> = "t".into();
        let (mut of_events, mut of_entries) = (IndexBuilder::default(), IndexBuilder::default());
        let (mut entries, mut offset) = (Vec::new(), 64);
        for (seq, &ts) in (1..).zip(times) {
            let mut batch = Batch::new();
            let payload = format!("{:?}", "x".repeat(6_000));
            batch.publish(
                &topic,
                &Draft {
                    payload: &payload,
                    ..Draft::default()
                },
            );
            let made = MadeId {
                ms: ts,
                tag: 1,
                seq,
            };
            let event = batch.events().next().unwrap();
            let event = StoredEvent::encode(event, &made.to_id(), ts, seq);
            of_events.add(offset, &event);
            let bytes = event.stored_bytes() as u32;
            entries.push(StreamEntry {
                seq,
                ts,
                offset,
                bytes,
            });
            offset += bytes;
        }
        of_entries.add_nameless(0, &topic, &entries);
        let owner = IndexFor {
            number: 1,
            generation: 0,
            data_bytes: u64::from(offset),
        };
        [of_events, of_entries].map(|builder| builder.finish(owner, b"state".to_vec()))
    }

    #[test]
    fn entries_alone_give_the_same_index_as_their_events() {
        for times in [&[][..], &[5], &[5, 5, 6, 7, 9, 9], &[5, 9, 7, 7, 8, 1]] {
            let [of_events, of_entries] = both_ways(times);
            assert_eq!(of_events, of_entries, "{times:?}");
        }
    }
}
