//! Finding positions: by id, by time, and the latest event of a key.

use super::{StreamPlaces, unknown};
use crate::batch::Batch;
use crate::error::ReadError;
use crate::event_id::{Id, MadeId};
use crate::front::Held;
use crate::names::NameRef;
use crate::receipt::{Placed, ReadLimit};
use crate::record::StoredEvent;
use crate::segment::index::{KEY_SPACE, OWN_ID_SPACE};
use crate::segment::sealed::RunItem;
use crate::shared::Shared;
use crate::view::{SealedRun, TopicView, View};
use std::sync::Arc;

const ONE_EVENT: ReadLimit = ReadLimit {
    events: 1,
    bytes: 0,
};

/// What finding needs to know of a topic, so that no lock is held meanwhile.
struct TopicPlace {
    number: u32,
    tag: u32,
    first_seq: u64,
    tail_seq: u64,
    runs: Vec<SealedRun>,
}

impl Shared {
    /// The position of an id that readers can see.
    pub(crate) fn find_id(&self, topic: &str, id: &str) -> Result<Option<u64>, ReadError> {
        let Some(id) = Id::own(id) else {
            return Ok(None);
        };
        // First where ids wait to be sealed, then the sealed ones: sealing moves them the same way.
        let number = self.place(topic)?.number;
        let waiting = self.front().own_ids.seq_of(number, &id);
        let place = self.place(topic)?;
        let visible = place.first_seq..place.tail_seq + 1;
        let made = MadeId::parse(id.as_str()).filter(|made| made.tag == place.tag);
        if let Some(made) = made.filter(|made| visible.contains(&made.seq))
            && let Some(event) = self.event(topic, made.seq)?
            && event.id() == id.as_str()
        {
            return Ok(Some(made.seq));
        }
        let found = match waiting {
            Some(seq) => Some(seq),
            None => self.sealed_own_id(&place, &id)?.map(|event| event.seq()),
        };
        Ok(found.filter(|seq| visible.contains(seq)))
    }

    /// The first position whose event has this ts or a later one.
    pub(crate) fn find_ts(&self, topic: &str, ts: u64) -> Result<Option<u64>, ReadError> {
        // What is not sealed is looked at together with what is, since sealing moves events from one to the other.
        let (place, unsealed) = {
            let view = self.view();
            let place = place_of(&view, topic)?;
            let found = view.streams.iter().find_map(|stream| {
                let run = stream.runs.get(&place.number)?;
                run.first_at_ts(ts, place.first_seq)
            });
            (place, found)
        };
        for run in &place.runs {
            let info = run.info();
            if info.max_ts < ts || info.last_seq < place.first_seq {
                continue;
            }
            let segment = &run.segment;
            let Some(offset) = self.healed(segment, segment.offset_for_ts(run.slot, ts))? else {
                return self.find_ts(topic, ts);
            };
            let mut reader = segment.reader(run.slot, offset);
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
        let (place, waiting) = {
            let view = self.view();
            let place = place_of(&view, topic)?;
            let mut newest_first = view.streams.iter().rev();
            let waiting = newest_first.find_map(|stream| {
                let run = stream.runs.get(&place.number)?;
                let seq = *run.keys.get(key)?;
                let entries = vec![*run.entries_from(seq).first()?];
                Some(StreamPlaces {
                    segment: stream.number,
                    file: stream.file.clone(),
                    entries,
                })
            });
            (place, waiting)
        };
        let kept = |event: &StoredEvent| event.seq() >= place.first_seq;
        if let Some(places) = waiting {
            return Ok(self.read_places(&places)?.pop().filter(kept));
        }
        let name = NameRef {
            space: KEY_SPACE,
            topic: place.number,
            name: key.as_bytes(),
        };
        Ok(self.sealed_name(&place, &name)?.filter(kept))
    }

    /// The same as far as it can be told from memory; `None` where the disk is needed.
    pub(crate) fn latest_recent(
        &self,
        topic: &str,
        key: &str,
    ) -> Result<Option<StoredEvent>, ReadError> {
        let view = self.view();
        let place = view.topic(topic).ok_or_else(|| unknown(topic))?;
        let mut newest_first = view.streams.iter().rev();
        let found = newest_first.find_map(|stream| {
            let run = stream.runs.get(&place.number)?;
            let entry = run.entries_from(*run.keys.get(key)?).first()?;
            Some((stream.number, *entry))
        });
        let kept = found.filter(|(_, entry)| entry.seq >= place.first_seq);
        let event = kept.and_then(|(segment, entry)| {
            let (offset, bytes) = (u64::from(entry.offset), entry.bytes as usize);
            view.recent.event(segment, offset, bytes)?.ok()
        });
        Ok(event)
    }

    /// The latest event of a key among a topic's sealed ones, which no crash can undo any more.
    pub(crate) fn sealed_latest(
        &self,
        number: u32,
        key: &str,
    ) -> Result<Option<StoredEvent>, ReadError> {
        let place = self.view().topics.get(&number).map(TopicPlace::of);
        let name = NameRef {
            space: KEY_SPACE,
            topic: number,
            name: key.as_bytes(),
        };
        match place {
            Some(place) => self.sealed_name(&place, &name),
            None => Ok(None),
        }
    }

    /// Which of a batch's own ids readers can see already, or were made for events on their way. Empty if no event
    /// has an own id.
    pub(crate) fn look_up_own_ids(&self, batch: &Batch) -> Result<Vec<Option<Held>>, ReadError> {
        if !batch.has_own_ids() {
            return Ok(Vec::new());
        }
        let mut held = Vec::with_capacity(batch.events().len());
        let mut last: Option<(&Arc<str>, Option<TopicPlace>)> = None;
        for event in batch.events() {
            let Some(id) = event.id() else {
                held.push(None);
                continue;
            };
            let known = matches!(&last, Some((topic, _)) if Arc::ptr_eq(topic, event.topic()));
            if !known {
                last = Some((event.topic(), self.place(event.topic()).ok()));
            }
            let place = last.as_ref().and_then(|(_, place)| place.as_ref());
            held.push(match place {
                Some(place) => self.look_up_own_id(event.topic(), place, &id, event.payload())?,
                None => None,
            });
        }
        Ok(held)
    }

    fn look_up_own_id(
        &self,
        topic: &str,
        place: &TopicPlace,
        id: &Id,
        payload: &[u8],
    ) -> Result<Option<Held>, ReadError> {
        let made = MadeId::parse(id.as_str()).filter(|made| made.tag == place.tag);
        if let Some(made) = made.filter(|made| made.seq > place.tail_seq) {
            let placed = Placed {
                id: *id,
                seq: made.seq,
                ts: made.ms,
            };
            return Ok(Some(Held {
                topic: place.number,
                placed,
                same_payload: false,
                is_ahead: true,
            }));
        }
        let made = match made {
            Some(made) => self.event(topic, made.seq)?,
            None => None,
        };
        let event = match made.filter(|event| event.id() == id.as_str()) {
            Some(event) => Some(event),
            None => self.sealed_own_id(place, id)?,
        };
        Ok(event.map(|event| Held {
            topic: place.number,
            placed: Placed {
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

    fn sealed_own_id(&self, place: &TopicPlace, id: &Id) -> Result<Option<StoredEvent>, ReadError> {
        let name = NameRef {
            space: OWN_ID_SPACE,
            topic: place.number,
            name: id.as_str().as_bytes(),
        };
        self.sealed_name(place, &name)
    }

    /// Looks a name up in a topic's sealed runs, newest first.
    fn sealed_name(
        &self,
        place: &TopicPlace,
        name: &NameRef<'_>,
    ) -> Result<Option<StoredEvent>, ReadError> {
        let kept = |run: &&SealedRun| run.info().last_seq >= place.first_seq;
        for run in place.runs.iter().rev().filter(kept) {
            let (mut segment, mut slot) = (run.segment.clone(), run.slot);
            let found = loop {
                match self.healed(&segment, segment.find(slot, name))? {
                    Some(found) => break found,
                    None => match self.view().sealed.get(&segment.header.number) {
                        Some(healed) => segment = healed.clone(),
                        None => break None,
                    },
                }
                match segment.slot_of(place.number) {
                    Some(healed) => slot = healed,
                    None => break None,
                }
            };
            if let Some(entry) = found
                && let Some(event) = self.sealed_event(&segment, slot, entry.offset, entry.seq)?
            {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn place(&self, name: &str) -> Result<TopicPlace, ReadError> {
        place_of(&self.view(), name)
    }
}

fn place_of(view: &View, name: &str) -> Result<TopicPlace, ReadError> {
    let topic = view.topic(name).ok_or_else(|| unknown(name))?;
    Ok(TopicPlace::of(topic))
}

impl TopicPlace {
    fn of(topic: &TopicView) -> Self {
        Self {
            number: topic.number,
            tag: topic.tag,
            first_seq: topic.first_seq,
            tail_seq: topic.tail_seq(),
            runs: topic.runs.clone(),
        }
    }
}
