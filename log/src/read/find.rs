//! Finding positions: by id, by time, and the latest event of a key.

use super::{ActivePlaces, unknown};
use crate::committer::Committer;
use crate::key_index::{self, KeyRef};
use crate::reader::Reader;
use crate::record::StoredEvent;
use crate::segment::index::{IdPrefix, IndexError, KEY_SPACE, OWN_ID_SPACE, prefix_of};
use crate::segment::sealed::{RunItem, Sealed};
use crate::view::{SealedRun, TopicView, View};
use crate::write_buffer::Held;
use prombus_store::{Batch, EncodedEvent, EventRef, GeneratedId, Id, ReadError, ReadLimit};
use std::cmp::Reverse;
use std::sync::Arc;

const ONE_EVENT: ReadLimit = ReadLimit {
    events: 1,
    bytes: 0,
};

/// For how many ids what the filters say is brought into the processor's cache at a time.
const TOUCHED_TOGETHER: usize = 32;

/// What finding needs to know of a topic, so that no lock is held meanwhile.
struct TopicPlace {
    number: u32,
    tag: u32,
    first_seq: u64,
    tail_seq: u64,
    /// No sealed segment holds a client id whose beginning is higher.
    highest_id: IdPrefix,
}

/// What is known of a batch's client ids.
#[derive(Default)]
pub(crate) struct LookedUp {
    /// For each event the one that has its id already; empty where no event has a client id.
    pub(crate) held: Vec<Option<Held>>,
    /// The events whose ids only the disk can tell of, in ascending order.
    unresolved: Vec<usize>,
}

/// What the form of an id tells.
enum ByForm {
    /// It was made for an event on its way, or is higher than all that are held.
    Told(Option<Held>),
    /// It is that of an event that readers can see.
    OnDisk,
    /// It has to be looked for.
    Unknown,
}

/// An id that the filters are asked for.
struct AskedId {
    /// Its event's place in the batch.
    at: usize,
    topic: u32,
    id: Id,
    hash: u64,
}

impl Committer {
    /// The position of an id that readers can see.
    pub(crate) fn find_id(&self, topic: &str, id: &str) -> Result<Option<u64>, ReadError> {
        let Some(id) = Id::from_client(id) else {
            return Ok(None);
        };
        // First where ids wait to be sealed, then the sealed ones: sealing moves them the same way.
        let number = self.reader.place(topic)?.number;
        let waiting = self.buffer().unsealed_ids.seq_of(number, &id);
        let place = self.reader.place(topic)?;
        let visible = place.first_seq..place.tail_seq + 1;
        let made = place.generated(&id);
        if let Some(made) = made.filter(|made| visible.contains(&made.seq))
            && let Some(event) = self.reader.event(topic, made.seq)?
            && event.id() == id.as_str()
        {
            return Ok(Some(made.seq));
        }
        let found = match waiting {
            Some(seq) => Some(seq),
            None => self
                .reader
                .sealed_client_id(&place, &id)?
                .map(|event| event.seq()),
        };
        Ok(found.filter(|seq| visible.contains(seq)))
    }
}

impl Reader {
    /// The first position whose event has this ts or a later one.
    pub(crate) fn find_ts(&self, topic: &str, ts: u64) -> Result<Option<u64>, ReadError> {
        // What is not sealed is looked at together with what is, since sealing moves events from one to the other.
        let (place, runs, unsealed) = {
            let view = self.view();
            let place = place_of(&view, topic)?;
            let runs = view.topic(topic).map(|topic| topic.kept_runs().to_vec());
            let found = view.active_segments.iter().find_map(|active| {
                let run = active.runs.get(&place.number)?;
                run.first_at_ts(ts, place.first_seq)
            });
            (place, runs.unwrap_or_default(), found)
        };
        for run in &runs {
            let Some(info) = self.run_info(run, place.number)? else {
                return self.find_ts(topic, ts);
            };
            if info.max_ts < ts || info.last_seq < place.first_seq {
                continue;
            }
            let segment = &run.segment;
            let Some(offset) = self.or_rebuild(segment, segment.offset_for_ts(&info, ts))? else {
                return self.find_ts(topic, ts);
            };
            let mut reader = segment.reader(&info, offset);
            while let Some(item) = reader.next()? {
                match item {
                    RunItem::Event { event, .. }
                        if event.ts() >= ts && event.seq() >= place.first_seq =>
                    {
                        return Ok(Some(event.seq()));
                    }
                    RunItem::Event { .. } => {}
                    RunItem::Damage(range) => self.note_damage(segment, range),
                }
            }
        }
        Ok(unsealed)
    }

    /// The latest event of a key.
    pub(crate) fn latest(&self, topic: &str, key: &str) -> Result<Option<StoredEvent>, ReadError> {
        let (place, runs, waiting) = {
            let view = self.view();
            let place = place_of(&view, topic)?;
            let runs = view.topic(topic).map(|topic| topic.kept_runs().to_vec());
            let mut newest_first = view.active_segments.iter().rev();
            let waiting = newest_first.find_map(|active| {
                let run = active.runs.get(&place.number)?;
                let seq = run.latest_of_key(key)?;
                let entries = vec![*run.entries_from(seq).first()?];
                Some(ActivePlaces {
                    segment: active.number,
                    file: active.file.clone(),
                    entries,
                })
            });
            (place, runs.unwrap_or_default(), waiting)
        };
        let kept = |event: &StoredEvent| event.seq() >= place.first_seq;
        if let Some(places) = waiting {
            return Ok(self.read_places(&places)?.pop().filter(kept));
        }
        let name = KeyRef {
            space: KEY_SPACE,
            topic: place.number,
            name: key.as_bytes(),
        };
        Ok(self.sealed_name(&runs, &name)?.filter(kept))
    }

    /// The same as far as it can be told from memory; `None` where the disk is needed.
    pub(crate) fn latest_cached(
        &self,
        topic: &str,
        key: &str,
    ) -> Result<Option<StoredEvent>, ReadError> {
        let view = self.view();
        let place = view.topic(topic).ok_or_else(|| unknown(topic))?;
        let mut newest_first = view.active_segments.iter().rev();
        let found = newest_first.find_map(|active| {
            let run = active.runs.get(&place.number)?;
            let entry = run.entries_from(run.latest_of_key(key)?).first()?;
            Some((active.number, *entry))
        });
        let kept = found.filter(|(_, entry)| entry.seq >= place.first_seq);
        let event = kept.and_then(|(segment, entry)| {
            let (offset, bytes) = (u64::from(entry.offset), entry.bytes as usize);
            view.tail_cache.event(segment, offset, bytes)?.ok()
        });
        Ok(event)
    }

    /// The latest event of a key among a topic's sealed ones, which no crash can undo any more.
    pub(crate) fn sealed_latest(
        &self,
        number: u32,
        key: &str,
    ) -> Result<Option<StoredEvent>, ReadError> {
        let runs = match self.view().topics.get(&number) {
            Some(topic) => topic.kept_runs().to_vec(),
            None => return Ok(None),
        };
        let name = KeyRef {
            space: KEY_SPACE,
            topic: number,
            name: key.as_bytes(),
        };
        self.sealed_name(&runs, &name)
    }

    /// Which of a batch's client ids readers can see already, or were made for events on their way, as far as that can be
    /// told without the disk.
    pub(crate) fn look_up_in_memory(&self, batch: &Batch) -> LookedUp {
        if !batch.has_client_ids() {
            return LookedUp::default();
        }
        let ids = self.client_ids.set();
        let uncovered = ids.uncovered().iter();
        let uncovered: Vec<Arc<Sealed>> =
            uncovered.flat_map(|range| self.sealed_in(range)).collect();
        let mut looked_up = LookedUp {
            held: vec![None; batch.events().len()],
            unresolved: Vec::new(),
        };
        let mut asked = Vec::new();
        self.each_client_id(batch, |at, _, found| {
            if let Some((place, id)) = found {
                match place.look_up_by_form(id) {
                    ByForm::Told(held) => looked_up.held[at] = held,
                    ByForm::OnDisk => looked_up.unresolved.push(at),
                    ByForm::Unknown => {
                        let (topic, id) = (place.number, *id);
                        let hash = key_index::hash(&id_name(topic, &id));
                        asked.push(AskedId {
                            at,
                            topic,
                            id,
                            hash,
                        });
                    }
                }
            }
            Ok(())
        })
        .unwrap_or_default();
        for asked in asked.chunks(TOUCHED_TOGETHER) {
            ids.touch(asked.iter().map(|one| one.hash));
            let is_ruled_out = |one: &&AskedId| {
                let name = id_name(one.topic, &one.id);
                let mut uncovered = uncovered.iter();
                !ids.may_hold(one.hash) && uncovered.all(|segment| segment.index.rules_out(&name))
            };
            let unresolved = asked.iter().filter(|one| !is_ruled_out(one));
            looked_up.unresolved.extend(unresolved.map(|one| one.at));
        }
        looked_up.unresolved.sort_unstable();
        looked_up
    }

    /// Asks the disk for what memory could not tell.
    pub(crate) fn look_up_on_disk(
        &self,
        batch: &Batch,
        mut looked_up: LookedUp,
    ) -> Result<Vec<Option<Held>>, ReadError> {
        let mut unresolved = looked_up.unresolved.iter().copied().peekable();
        self.each_client_id(batch, |at, event, found| {
            if unresolved.next_if_eq(&at).is_some()
                && let Some((place, id)) = found
            {
                looked_up.held[at] =
                    self.look_up_client_id(event.topic(), place, id, event.payload())?;
            }
            Ok(())
        })?;
        Ok(looked_up.held)
    }

    /// Calls `each` for every event of a batch, with its id and the place of its topic where it has both.
    fn each_client_id<'a>(
        &self,
        batch: &'a Batch,
        mut each: impl FnMut(
            usize,
            EncodedEvent<'a>,
            Option<(&TopicPlace, &Id)>,
        ) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut last: Option<(&Arc<str>, Option<TopicPlace>)> = None;
        for (at, event) in batch.events().enumerate() {
            let Some(id) = event.id() else {
                each(at, event, None)?;
                continue;
            };
            let known = matches!(&last, Some((topic, _)) if Arc::ptr_eq(topic, event.topic()));
            if !known {
                last = Some((event.topic(), self.place(event.topic()).ok()));
            }
            let place = last.as_ref().and_then(|(_, place)| place.as_ref());
            each(at, event, place.map(|place| (place, &id)))?;
        }
        Ok(())
    }

    fn look_up_client_id(
        &self,
        topic: &str,
        place: &TopicPlace,
        id: &Id,
        payload: &[u8],
    ) -> Result<Option<Held>, ReadError> {
        let made = place.generated(id);
        if let Some(ahead) = made.and_then(|made| place.ahead(id, made)) {
            return Ok(Some(ahead));
        }
        let made = match made {
            Some(made) => self.event(topic, made.seq)?,
            None => None,
        };
        let event = match made.filter(|event| event.id() == id.as_str()) {
            Some(event) => Some(event),
            None => self.sealed_client_id(place, id)?,
        };
        Ok(event.map(|event| Held {
            topic: place.number,
            event_ref: EventRef {
                id: *id,
                seq: event.seq(),
                ts: event.ts(),
            },
            same_payload: event.payload().as_bytes() == payload,
            is_ahead: false,
        }))
    }

    /// The event at exactly this position.
    fn event(&self, topic: &str, seq: u64) -> Result<Option<StoredEvent>, ReadError> {
        let page = self.read(topic, seq, ONE_EVENT)?;
        let found = page.events.into_iter().next();
        Ok(found.filter(|event| event.seq() == seq))
    }

    /// The event with a client id among the sealed ones.
    fn sealed_client_id(
        &self,
        place: &TopicPlace,
        id: &Id,
    ) -> Result<Option<StoredEvent>, ReadError> {
        if place.is_above(id) {
            return Ok(None);
        }
        let name = id_name(place.number, id);
        for segment in self.segments_with_id(key_index::hash(&name))? {
            if let Some(event) = self.find_in_segment(segment, &name)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The segments that may hold a client id, newest first.
    fn segments_with_id(&self, hash: u64) -> Result<Vec<Arc<Sealed>>, ReadError> {
        loop {
            let set = self.client_ids.set();
            let mut numbers = Vec::new();
            match set.segments_of(hash, &mut numbers) {
                Ok(()) => {}
                Err((_, IndexError::Io(error))) => return Err(error.into()),
                Err((run, IndexError::Damaged)) => {
                    self.client_ids.discard(&run);
                    continue;
                }
            }
            let named = numbers.into_iter().map(|number| number..=number);
            let ranges = named.chain(set.uncovered().iter().cloned());
            let mut segments: Vec<Arc<Sealed>> =
                ranges.flat_map(|range| self.sealed_in(&range)).collect();
            segments.sort_unstable_by_key(|segment| Reverse(segment.header.number));
            segments.dedup_by_key(|segment| segment.header.number);
            return Ok(segments);
        }
    }

    /// The event of a name in one segment, whose index is made again if it turns out damaged.
    fn find_in_segment(
        &self,
        mut segment: Arc<Sealed>,
        name: &KeyRef<'_>,
    ) -> Result<Option<StoredEvent>, ReadError> {
        loop {
            match self.or_rebuild(&segment, segment.index.find(name))? {
                Some(None) => return Ok(None),
                Some(Some(entry)) => {
                    return Ok(self.sealed_event(&segment, name.topic, entry.offset, entry.seq)?);
                }
                None => {
                    let number = segment.header.number;
                    match self.sealed_in(&(number..=number)).into_iter().next() {
                        Some(healed) => segment = healed,
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    /// Looks a name up in a topic's sealed runs, newest first.
    fn sealed_name(
        &self,
        runs: &[SealedRun],
        name: &KeyRef<'_>,
    ) -> Result<Option<StoredEvent>, ReadError> {
        for run in runs.iter().rev() {
            if let Some(event) = self.find_in_segment(run.segment.clone(), name)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn place(&self, name: &str) -> Result<TopicPlace, ReadError> {
        place_of(&self.view(), name)
    }
}

/// The name of a client id in the indexes.
fn id_name(topic: u32, id: &Id) -> KeyRef<'_> {
    KeyRef {
        space: OWN_ID_SPACE,
        topic,
        name: id.as_str().as_bytes(),
    }
}

fn place_of(view: &View, name: &str) -> Result<TopicPlace, ReadError> {
    let topic = view.topic(name).ok_or_else(|| unknown(name))?;
    Ok(TopicPlace::of(topic))
}

impl LookedUp {
    /// Whether memory told everything.
    pub(crate) fn is_complete(&self) -> bool {
        self.unresolved.is_empty()
    }
}

impl TopicPlace {
    fn look_up_by_form(&self, id: &Id) -> ByForm {
        match self.generated(id) {
            Some(made) => match self.ahead(id, made) {
                Some(ahead) => ByForm::Told(Some(ahead)),
                None => ByForm::OnDisk,
            },
            None if self.is_above(id) => ByForm::Told(None),
            None => ByForm::Unknown,
        }
    }

    /// Whether an id is higher than all in sealed segments, as ids that rise with time are.
    fn is_above(&self, id: &Id) -> bool {
        prefix_of(id.as_str().as_bytes()) > self.highest_id
    }

    /// The parts of an id that has the form of those generated in this topic.
    fn generated(&self, id: &Id) -> Option<GeneratedId> {
        GeneratedId::parse(id.as_str()).filter(|made| made.tag == self.tag)
    }

    /// A generated id whose position is not visible yet.
    fn ahead(&self, id: &Id, made: GeneratedId) -> Option<Held> {
        let event_ref = EventRef {
            id: *id,
            seq: made.seq,
            ts: made.ms,
        };
        (made.seq > self.tail_seq).then_some(Held {
            topic: self.number,
            event_ref,
            same_payload: false,
            is_ahead: true,
        })
    }

    fn of(topic: &TopicView) -> Self {
        Self {
            number: topic.number,
            tag: topic.tag,
            first_seq: topic.first_seq,
            tail_seq: topic.tail_seq(),
            highest_id: topic.highest_id,
        }
    }
}
