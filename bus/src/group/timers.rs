//! When something is due: lease deadlines and retries in one heap. An entry whose lease has ended stays in it until
//! it comes up or until such entries outnumber the live ones; the heap is bounded by that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Below this many entries stale ones are not swept.
const MIN_SWEEP: usize = 64;

/// Times at which positions are due.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
}

impl Timers {
    pub(crate) fn add(&mut self, due_ms: u64, seq: u64) {
        self.heap.push(Reverse((due_ms, seq)));
    }

    /// The earliest entry that is still meant.
    pub(crate) fn next_due(&mut self, is_meant: impl Fn(u64, u64) -> bool) -> Option<u64> {
        while let Some(&Reverse((due_ms, seq))) = self.heap.peek() {
            if is_meant(due_ms, seq) {
                return Some(due_ms);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes an entry that is due, meant or not.
    pub(crate) fn pop_due(&mut self, now_ms: u64) -> Option<(u64, u64)> {
        let &Reverse((due_ms, seq)) = self.heap.peek()?;
        if due_ms > now_ms {
            return None;
        }
        self.heap.pop();
        Some((due_ms, seq))
    }

    /// Throws the stale entries away where they outnumber the `live` ones.
    pub(crate) fn sweep(&mut self, live: usize, is_meant: impl Fn(u64, u64) -> bool) {
        if self.heap.len() > MIN_SWEEP + 2 * live {
            self.heap
                .retain(|&Reverse((due_ms, seq))| is_meant(due_ms, seq));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}
