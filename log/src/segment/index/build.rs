//! Building an index from a segment's events, in the order they lie in it.

use super::{Index, IndexFor, Point, RunInfo, SECTIONS};
use crate::names::{self, NameEntry, NameRef};
use crate::record::StoredEvent;
use std::collections::{BTreeMap, HashMap};

/// Name spaces of the name table.
pub(crate) const OWN_ID_SPACE: u8 = 0;
pub(crate) const KEY_SPACE: u8 = 1;

/// A reader that wants one event reads at most this much before it.
const POINT_EVERY_BYTES: u32 = 16 << 10;

/// Collects what the index of one segment says.
#[derive(Default)]
pub(crate) struct IndexBuilder {
    runs: BTreeMap<u32, RunBuilder>,
    own_ids: Vec<(u32, Box<[u8]>, NameEntry)>,
}

struct RunBuilder {
    info: RunInfo,
    points: Vec<Point>,
    /// Every event, kept only until it is known that the run needs no order of its own.
    events: Vec<Point>,
    keys: HashMap<Box<str>, (NameEntry, bool)>,
}

impl IndexBuilder {
    /// Takes in the event whose record lies at `offset`. A topic's events come in the order of positions.
    pub(crate) fn add(&mut self, offset: u32, event: &StoredEvent) {
        let run = self
            .runs
            .entry(event.topic_number())
            .or_insert_with(|| RunBuilder::new(offset, event));
        run.add(offset, event);
        if event.has_own_id() {
            let entry = NameEntry {
                seq: event.seq(),
                offset,
            };
            let id = event.id().as_bytes().into();
            self.own_ids.push((event.topic_number(), id, entry));
        }
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
            run.info.write(&mut sections[0]);
            keys.extend(
                run.keys
                    .into_iter()
                    .map(|(key, (entry, _))| (topic, key, entry)),
            );
        }
        let mut own_ids = self.own_ids;
        // An id that retention let go may have been published again; the newest counts.
        own_ids.sort_unstable_by(|a, b| {
            let newest_first = b.2.seq.cmp(&a.2.seq);
            (a.0, &a.1).cmp(&(b.0, &b.1)).then(newest_first)
        });
        own_ids.dedup_by(|later, earlier| (later.0, &later.1) == (earlier.0, &earlier.1));
        keys.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let own_ids = own_ids
            .iter()
            .map(|(topic, id, entry)| (name(OWN_ID_SPACE, *topic, id), *entry));
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
    fn new(offset: u32, event: &StoredEvent) -> Self {
        Self {
            info: RunInfo {
                topic: event.topic_number(),
                name: event.topic().into(),
                first_seq: event.seq(),
                last_seq: event.seq(),
                events: 0,
                bytes: 0,
                min_ts: event.ts(),
                max_ts: event.ts(),
                ordered: true,
                data: offset..offset,
                points: 0..0,
                order: 0..0,
                superseded: 0,
                tombstones: 0,
            },
            points: Vec::new(),
            events: Vec::new(),
            keys: HashMap::new(),
        }
    }

    fn add(&mut self, offset: u32, event: &StoredEvent) {
        let (seq, ts) = (event.seq(), event.ts());
        let info = &mut self.info;
        if info.ordered && ts < info.max_ts {
            info.ordered = false;
        }
        info.last_seq = seq;
        info.events += 1;
        info.bytes += event.stored_bytes() as u64;
        info.min_ts = info.min_ts.min(ts);
        info.max_ts = info.max_ts.max(ts);
        info.data.end = offset + event.stored_bytes() as u32;
        self.events.push(Point { seq, ts, offset });
        let is_due = |last: &Point| offset - last.offset >= POINT_EVERY_BYTES;
        if self.points.last().is_none_or(is_due) {
            self.points.push(Point {
                seq,
                ts: info.max_ts,
                offset,
            });
        }
        if let Some(key) = event.key() {
            let latest = (NameEntry { seq, offset }, event.is_tombstone());
            match self.keys.get_mut(&*key) {
                Some(known) => {
                    *known = latest;
                    info.superseded += 1;
                }
                None => {
                    self.keys.insert(key.into(), latest);
                }
            }
        }
    }
}

fn name(space: u8, topic: u32, name: &[u8]) -> NameRef<'_> {
    NameRef { space, topic, name }
}
