//! Building an index from a segment's events, in the order they are in it.

use super::{IdPrefix, Index, IndexFor, Point, RunInfo, SECTIONS, directory, prefix_of};
use crate::key_index::{self, KeyEntry, KeyRef};
use crate::record::StoredEvent;
use crate::segment::active::ActiveEntry;
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
    unsealed_ids: Vec<ClientIdKey>,
    /// The text of all client ids, one behind the other: there may be one for each event.
    client_id_text: Vec<u8>,
    /// When the segment was made: no event in it that does not say is known to be stored later.
    created_ms: u64,
}

/// A client id of a topic, and where its text is.
struct ClientIdKey {
    topic: u32,
    text: Range<u32>,
    entry: KeyEntry,
}

struct RunBuilder {
    name: Arc<str>,
    info: RunInfo,
    points: Vec<Point>,
    /// Every event, kept only until it is known that the run needs no order of its own.
    events: Vec<Point>,
    keys: HashMap<Box<str>, (KeyEntry, bool)>,
}

impl IndexBuilder {
    /// For a segment that was made at `created_ms`.
    pub(crate) fn new(created_ms: u64) -> Self {
        Self {
            created_ms,
            ..Self::default()
        }
    }

    /// Takes in the event whose record is at `offset`. A topic's events come in the order of positions.
    pub(crate) fn add(&mut self, offset: u32, event: &StoredEvent) {
        let topic = event.topic_number();
        let entry = ActiveEntry {
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
        let name = KeyEntry {
            seq: entry.seq,
            offset,
        };
        if let Some(key) = event.key() {
            run.add_key(&key, name, event.is_tombstone());
        }
        if event.has_client_id() {
            let prefix = prefix_of(event.id().as_bytes());
            run.info.highest_id = run.info.highest_id.max(prefix);
            let start = self.client_id_text.len() as u32;
            self.client_id_text.extend_from_slice(event.id().as_bytes());
            self.unsealed_ids.push(ClientIdKey {
                topic,
                text: start..self.client_id_text.len() as u32,
                entry: name,
            });
        }
    }

    /// Takes in all events of a topic that has no keys, no client ids and no ts but those the log gave.
    pub(crate) fn add_nameless(&mut self, topic: u32, name: &Arc<str>, entries: &[ActiveEntry]) {
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
        let mut unsealed_ids = self.unsealed_ids;
        let own_name = |own: &ClientIdKey| {
            let text = own.text.start as usize..own.text.end as usize;
            name(OWN_ID_SPACE, own.topic, &self.client_id_text[text])
        };
        // An id that retention let go may have been published again; the newest counts.
        unsealed_ids.sort_unstable_by(|a, b| {
            let newest_first = b.entry.seq.cmp(&a.entry.seq);
            own_name(a).cmp(&own_name(b)).then(newest_first)
        });
        unsealed_ids.dedup_by(|later, earlier| own_name(later) == own_name(earlier));
        keys.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let unsealed_ids = unsealed_ids.iter().map(|own| (own_name(own), own.entry));
        let keys = keys
            .iter()
            .map(|(topic, key, entry)| (name(KEY_SPACE, *topic, key.as_bytes()), *entry));
        let table = key_index::build(unsealed_ids.chain(keys));
        (sections[3], sections[4], sections[5]) = (table.blocks, table.fences, table.filter);
        sections[6] = checkpoint;
        Index::encode(owner, &sections)
    }
}

impl RunBuilder {
    fn new(topic: u32, name: Arc<str>, first: &ActiveEntry) -> Self {
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

    fn add(&mut self, entry: &ActiveEntry, stored_ms: u64) {
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

    fn add_key(&mut self, key: &str, name: KeyEntry, is_tombstone: bool) {
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

fn name(space: u8, topic: u32, name: &[u8]) -> KeyRef<'_> {
    KeyRef { space, topic, name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prombus_store::GeneratedId;
    use prombus_store::{Batch, Draft};

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
            let made = GeneratedId {
                ms: ts,
                tag: 1,
                seq,
            };
            let event = batch.events().next().unwrap();
            let event = StoredEvent::encode(event, &made.to_id(), ts, seq);
            of_events.add(offset, &event);
            let bytes = event.stored_bytes() as u32;
            entries.push(ActiveEntry {
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
