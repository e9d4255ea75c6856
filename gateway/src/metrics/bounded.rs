//! A bounded number of series by name, and one for all the rest.

use prombus::RwLockExt;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

#[derive(Debug)]
pub(super) struct Bounded<N, S> {
    limit: usize,
    /// In order, so that two scrapes list the same things in the same places.
    series: RwLock<BTreeMap<N, Arc<S>>>,
    other: Arc<S>,
    /// Whether anything ever was counted together.
    is_overflown: AtomicBool,
}

impl<N: Ord + Clone, S: Default> Bounded<N, S> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            series: RwLock::default(),
            other: Arc::default(),
            is_overflown: AtomicBool::new(false),
        }
    }

    /// The series of this name, made if there is room, else the one for the rest.
    pub(super) fn get(&self, name: N) -> Arc<S> {
        let series = self.series.read_guard();
        if let Some(found) = series.get(&name) {
            return found.clone();
        }
        if series.len() >= self.limit {
            self.is_overflown.store(true, Relaxed);
            return self.other.clone();
        }
        drop(series);
        let mut series = self.series.write_guard();
        if series.len() < self.limit || series.contains_key(&name) {
            return series.entry(name).or_default().clone();
        }
        self.is_overflown.store(true, Relaxed);
        self.other.clone()
    }

    /// The series of this name, where it is counted apart already.
    pub(super) fn find(&self, name: &N) -> Option<Arc<S>> {
        let series = self.series.read_guard();
        series.get(name).cloned()
    }

    /// The series for all the rest.
    pub(super) fn other(&self) -> &S {
        &self.other
    }

    /// Whether this is the series for all the rest.
    pub(super) fn is_other(&self, series: &Arc<S>) -> bool {
        Arc::ptr_eq(series, &self.other)
    }

    pub(super) fn forget(&self, is_gone: impl Fn(&N) -> bool) {
        let mut series = self.series.write_guard();
        series.retain(|name, _| !is_gone(name));
    }

    /// All series with their names; the one without is for the rest.
    pub(super) fn all(&self) -> Vec<(Option<N>, Arc<S>)> {
        let series = self.series.read_guard();
        let named = series
            .iter()
            .map(|(name, series)| (Some(name.clone()), series.clone()));
        let other = self
            .is_overflown
            .load(Relaxed)
            .then(|| (None, self.other.clone()));
        named.chain(other).collect()
    }
}
