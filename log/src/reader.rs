//! The reading side of an open log: the view of what is visible, the caches and the indexes behind it. Its methods are in
//! `read/`; sealing and rewriting change the view through `view/sealed_runs.rs`.

use crate::background::Background;
use crate::client_ids::ClientIds;
use crate::damage::DamageList;
use crate::files::Files;
use crate::segment::cache::SectionCache;
use crate::segment::sealed::Sealed;
use crate::view::View;
use prombus_store::RwLockExt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Reads events by position, time, id and key.
pub(crate) struct Reader {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) background: Arc<Background>,
    view: RwLock<View>,
    pub(crate) cache: Arc<SectionCache>,
    /// The client ids of sealed segments. Its lock comes after the view's.
    pub(crate) client_ids: ClientIds,
    pub(crate) damage: DamageList,
    /// Held while a damaged index is made again, and while a segment is put in its place or removed. Comes after the
    /// maintainer's `rewriting`.
    pub(crate) rebuilding: Mutex<()>,
}

/// What reading needs, as opening the log has put it together.
pub(crate) struct ReaderParts {
    pub(crate) view: View,
    pub(crate) cache: Arc<SectionCache>,
    pub(crate) client_ids: ClientIds,
    pub(crate) damage: DamageList,
}

impl Reader {
    pub(crate) fn new(
        files: Arc<dyn Files>,
        background: Arc<Background>,
        parts: ReaderParts,
    ) -> Self {
        Self {
            files,
            background,
            view: RwLock::new(parts.view),
            cache: parts.cache,
            client_ids: parts.client_ids,
            damage: parts.damage,
            rebuilding: Mutex::default(),
        }
    }

    pub(crate) fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read_guard()
    }

    pub(crate) fn view_mut(&self) -> RwLockWriteGuard<'_, View> {
        self.view.write_guard()
    }

    /// The sealed segments that hold events of segments with these numbers, in order.
    pub(crate) fn sealed_in(&self, numbers: &RangeInclusive<u64>) -> Vec<Arc<Sealed>> {
        let view = self.view();
        let before = view.sealed.range(..*numbers.start()).next_back();
        let before = before.map(|(_, segment)| segment);
        let before = before.filter(|segment| segment.header.covers_to >= *numbers.start());
        let inside = view
            .sealed
            .range(numbers.clone())
            .map(|(_, segment)| segment);
        before.into_iter().chain(inside).cloned().collect()
    }
}
