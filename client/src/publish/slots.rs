//! Where the replies to publishes wait for their futures. Places are used again, so that in the long run a
//! publish allocates nothing for its answer.

use super::Published;
use crate::error::PublishError;
use std::task::{Context, Poll, Waker};

/// The place of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotNumber(u32);

/// All places.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
enum Slot {
    Free,
    /// Somebody may be waiting.
    Waiting(Option<Waker>),
    /// The caller has gone away.
    Abandoned,
    Completed(Result<Published, PublishError>),
}

impl Slots {
    /// A place for an answer that is yet to come.
    pub(crate) fn reserve(&mut self) -> SlotNumber {
        if let Some(at) = self.free.pop() {
            self.slots[at as usize] = Slot::Waiting(None);
            return SlotNumber(at);
        }
        let at = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot::Waiting(None));
        SlotNumber(at)
    }

    /// Puts the answer there, and gives back who is to be woken.
    pub(crate) fn complete(
        &mut self,
        number: SlotNumber,
        answer: Result<Published, PublishError>,
    ) -> Option<Waker> {
        let slot = &mut self.slots[number.0 as usize];
        match std::mem::replace(slot, Slot::Free) {
            Slot::Waiting(waker) => {
                *slot = Slot::Completed(answer);
                waker
            }
            Slot::Abandoned => {
                self.free.push(number.0);
                None
            }
            other @ (Slot::Free | Slot::Completed(_)) => {
                *slot = other;
                None
            }
        }
    }

    /// Takes the answer where it is there, and frees its place.
    pub(crate) fn poll(
        &mut self,
        number: SlotNumber,
        context: &Context<'_>,
    ) -> Poll<Result<Published, PublishError>> {
        let slot = &mut self.slots[number.0 as usize];
        match std::mem::replace(slot, Slot::Free) {
            Slot::Completed(answer) => {
                self.free.push(number.0);
                Poll::Ready(answer)
            }
            Slot::Waiting(waker) => {
                let waker = waker.filter(|waker| waker.will_wake(context.waker()));
                let waker = waker.unwrap_or_else(|| context.waker().clone());
                *slot = Slot::Waiting(Some(waker));
                Poll::Pending
            }
            other @ (Slot::Free | Slot::Abandoned) => {
                *slot = other;
                Poll::Pending
            }
        }
    }

    /// The caller has gone away.
    pub(crate) fn abandon(&mut self, number: SlotNumber) {
        let slot = &mut self.slots[number.0 as usize];
        match slot {
            Slot::Waiting(_) => *slot = Slot::Abandoned,
            Slot::Completed(_) => {
                *slot = Slot::Free;
                self.free.push(number.0);
            }
            Slot::Free | Slot::Abandoned => {}
        }
    }
}
