//! What makes the ids and records of topics that events come to one after the other. It is a cache of fixed size: a topic
//! whose place another one has taken starts afresh, which costs a little time and no memory for each topic.

use crate::record::EventEncoder;
use prombus_store::{IdGenerator, tag_of};

/// Topics have numbers in a row, so that fewer topics than this never share a place.
const PLACES: usize = 1_024;

/// The encoders of the topics that were last published to.
pub(crate) struct Encoders {
    log_id: u64,
    places: Box<[TopicEncoder]>,
}

/// Makes the ids and the records of one topic.
pub(crate) struct TopicEncoder {
    topic: u32,
    /// Sets its ids apart from other topics' and from those of an earlier topic of the same name.
    pub(crate) ids: IdGenerator,
    /// How its records begin.
    pub(crate) records: EventEncoder,
}

impl Encoders {
    pub(crate) fn new(log_id: u64) -> Self {
        let places = (0..PLACES as u32).map(|topic| TopicEncoder {
            topic,
            ids: IdGenerator::new(tag_of(log_id, topic)),
            records: EventEncoder::default(),
        });
        Self {
            log_id,
            places: places.collect(),
        }
    }

    /// The encoder of the topic with this number.
    pub(crate) fn of(&mut self, topic: u32) -> &mut TopicEncoder {
        let place = &mut self.places[topic as usize % PLACES];
        if place.topic != topic {
            place.topic = topic;
            place.ids = IdGenerator::new(tag_of(self.log_id, topic));
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_that_share_a_place_make_their_own_ids() {
        let mut encoders = Encoders::new(7);
        let (one, other) = (3, 3 + PLACES as u32);
        let ids = [one, other, one, other, other].map(|topic| {
            let id = encoders.of(topic).ids.make(1_000, 5);
            assert_eq!(id, IdGenerator::new(tag_of(7, topic)).make(1_000, 5));
            id
        });
        assert!(ids[0] != ids[1] && ids[0] == ids[2] && ids[3] == ids[4]);
    }
}
