//! What the bus offers for effects: a place for dedupe marks.

use super::Bus;
use crate::dedupe::EmbeddedDedupe;

impl Bus {
    /// A place for dedupe marks beside the events, in the bus's own store.
    pub fn dedupe(&self) -> EmbeddedDedupe {
        EmbeddedDedupe::new(self.core.store.clone(), self.core.options.clock.clone())
    }
}
