//! Events that wait in mailboxes without the blocks that they were read with. An event shares the bytes of everything that was
//! written or read together with it; one that waits would keep all of that in memory, though only its own bytes are
//! counted. So once some wait, they are copied out where that frees much.

use super::state::Leased;
use prombus_store::record::EventBlock;

/// While fewer bytes than this wait for all subscriptions together, events keep their blocks: they are sent at once, and a
/// copy would cost more than it frees.
const COMPACT_FROM_BYTES: usize = 256 << 10;
/// Events are copied where their blocks are so many times as large as they are.
const MIN_RATIO: usize = 4;

/// Copies events that are about to wait out of blocks that are much larger, where `waiting_bytes` wait already.
pub(crate) fn compact(leased: &mut [Leased], waiting_bytes: usize) {
    if waiting_bytes < COMPACT_FROM_BYTES || !is_worth_it(leased) {
        return;
    }
    let mut block = EventBlock::default();
    leased.iter().for_each(|one| block.copy(&one.event));
    for (one, copy) in leased.iter_mut().zip(block.take()) {
        one.event = copy;
    }
}

fn is_worth_it(leased: &[Leased]) -> bool {
    let (mut own_bytes, mut block_bytes) = (0, 0);
    let mut previous: Option<&Leased> = None;
    for one in leased {
        own_bytes += one.event.stored_bytes();
        // Events of one block come one after the other.
        if previous.is_none_or(|before| !before.event.shares_block(&one.event)) {
            block_bytes += one.event.block_bytes();
        }
        previous = Some(one);
    }
    block_bytes / MIN_RATIO >= own_bytes.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prombus_store::memory::MemoryStore;
    use prombus_store::{ManualClock, ReadFrom, ReadLimit, Store, StoredEvent};
    use std::sync::Arc;

    /// Events of a topic that share a block with many of another one.
    async fn events() -> Vec<StoredEvent> {
        let clock = Arc::new(ManualClock::at(1));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
        let options = crate::BusOptions {
            clock,
            ..crate::BusOptions::default()
        };
        let bus = crate::Bus::open(store, options).expect("good options");
        let mut batch = bus.batch();
        for number in 0..100 {
            let topic = if number % 50 == 0 { "few" } else { "many" };
            batch.add(topic, "\"some text\"", &crate::PublishOptions::default());
        }
        bus.publish_batch(batch).await;
        let limit = ReadLimit {
            events: 100,
            bytes: usize::MAX,
        };
        let mut block = EventBlock::default();
        for topic in ["few", "many"] {
            let page = bus.store().read(&topic.into(), ReadFrom::Seq(1), limit);
            let page = page.await.expect("it can be read");
            page.events.iter().for_each(|event| block.copy(event));
        }
        let few = block.take().filter(|event| event.topic() == "few");
        few.collect()
    }

    fn leased(events: &[StoredEvent]) -> Vec<Leased> {
        let leased = |event: &StoredEvent| Leased {
            event: event.clone(),
            number: 1,
            attempt: 1,
            max_attempts: 5,
            deadline_ms: 9,
            timeout_ms: 9,
        };
        events.iter().map(leased).collect()
    }

    #[tokio::test]
    async fn events_that_wait_do_not_keep_others_in_memory() {
        let events = events().await;
        assert_eq!(events.len(), 2);
        let own: usize = events.iter().map(StoredEvent::stored_bytes).sum();
        assert!(events[0].block_bytes() > own * 10, "they share a block");
        let mut compacted = leased(&events);
        compact(&mut compacted, COMPACT_FROM_BYTES - 1);
        assert!(compacted[0].event.shares_block(&events[0]), "few wait");
        compact(&mut compacted, COMPACT_FROM_BYTES);
        for (one, event) in compacted.iter().zip(&events) {
            assert_eq!(one.event.block_bytes(), own);
            assert_eq!(one.event.json(), event.json());
            assert_eq!(one.event.seq(), event.seq());
        }
        let again = compacted[0].event.clone();
        compact(&mut compacted, usize::MAX);
        assert!(compacted[0].event.shares_block(&again), "nothing to free");
    }
}
