//! A key set that follows its source: loaded again at intervals and when a token names a key that is not known.
//!
//! Loading happens one at a time and not too often, whatever tokens come in. When it fails the last good set stays.

use super::error::{AuthError, KeysUnavailable};
use super::jwt::PublicKeyAlgorithm;
use super::keys::KeySet;
use super::source::KeySource;
use prombus::RwLockExt;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;

/// How old a set may grow.
pub(super) const REFRESH_INTERVAL_MS: u64 = 300_000;
/// The shortest time between two attempts to load the set.
pub(super) const REFRESH_GAP_MS: u64 = 10_000;
/// How long a source may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct RotatingKeys {
    source: Arc<dyn KeySource>,
    state: RwLock<State>,
    /// Held while the set is being loaded.
    loading: Arc<Mutex<()>>,
}

struct State {
    keys: Arc<KeySet>,
    /// When the set was loaded, if ever.
    loaded_at_ms: Option<u64>,
    /// When it was last tried.
    tried_at_ms: Option<u64>,
    /// How the last try ended.
    outcome: Result<(), KeysUnavailable>,
}

impl RotatingKeys {
    pub(super) fn new(source: Arc<dyn KeySource>) -> Self {
        let reason = "not loaded yet".to_owned();
        let state = State {
            keys: Arc::default(),
            loaded_at_ms: None,
            tried_at_ms: None,
            outcome: Err(KeysUnavailable { reason }),
        };
        Self {
            source,
            state: RwLock::new(state),
            loading: Arc::default(),
        }
    }

    /// A set with a key that could have signed a token with this header.
    pub(super) async fn that_know(
        self: &Arc<Self>,
        algorithm: PublicKeyAlgorithm,
        kid: Option<&str>,
        now_ms: u64,
    ) -> Result<Arc<KeySet>, AuthError> {
        let keys = self.read(|state| state.keys.clone());
        if keys.knows(algorithm, kid) {
            return Ok(keys);
        }
        let outcome = self.load_if(now_ms, |state| state.may_try(now_ms)).await;
        let (keys, is_loaded) =
            self.read(|state| (state.keys.clone(), state.loaded_at_ms.is_some()));
        if keys.knows(algorithm, kid) {
            return Ok(keys);
        }
        match outcome {
            Err(error) if !is_loaded => Err(error.into()),
            _ => Err(AuthError::unknown_key(kid)),
        }
    }

    pub(super) async fn refresh(self: &Arc<Self>, now_ms: u64) -> Result<(), KeysUnavailable> {
        self.load_if(now_ms, |_| true).await
    }

    pub(super) async fn refresh_if_due(
        self: &Arc<Self>,
        now_ms: u64,
    ) -> Result<(), KeysUnavailable> {
        let is_due = |state: &State| state.is_old(now_ms) && state.may_try(now_ms);
        if self.read(is_due) {
            self.load_if(now_ms, is_due).await
        } else {
            Ok(())
        }
    }

    /// Loads the set if that is still wanted under the lock, and returns the outcome of the last attempt.
    async fn load_if(
        self: &Arc<Self>,
        now_ms: u64,
        is_wanted: impl Fn(&State) -> bool,
    ) -> Result<(), KeysUnavailable> {
        let loading = self.loading.clone().lock_owned().await;
        if !self.read(is_wanted) {
            return self.read(|state| state.outcome.clone());
        }
        self.write(|state| state.tried_at_ms = Some(now_ms));
        let this = self.clone();
        // The load is shared: it continues when the caller that started it goes away.
        let task = tokio::spawn(async move {
            let outcome = this.load(now_ms).await;
            this.write(|state| state.outcome = outcome.clone());
            drop(loading);
            outcome
        });
        match task.await {
            Ok(outcome) => outcome,
            Err(_) => Err(unavailable("loading was cancelled")),
        }
    }

    async fn load(&self, now_ms: u64) -> Result<(), KeysUnavailable> {
        let text = tokio::time::timeout(FETCH_TIMEOUT, self.source.fetch())
            .await
            .map_err(|_| unavailable("no response within 10 s"))??;
        let keys = Arc::new(KeySet::parse(&text)?);
        self.write(|state| {
            state.keys = keys;
            state.loaded_at_ms = Some(now_ms);
        });
        Ok(())
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read_guard())
    }

    fn write(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write_guard());
    }
}

impl State {
    fn is_old(&self, now_ms: u64) -> bool {
        is_past(self.loaded_at_ms, REFRESH_INTERVAL_MS, now_ms)
    }

    fn may_try(&self, now_ms: u64) -> bool {
        is_past(self.tried_at_ms, REFRESH_GAP_MS, now_ms)
    }
}

/// A clock that was set back counts as far away too, else nothing would happen until it has caught up.
fn is_past(since_ms: Option<u64>, after_ms: u64, now_ms: u64) -> bool {
    since_ms.is_none_or(|since_ms| now_ms.abs_diff(since_ms) >= after_ms)
}

fn unavailable(reason: &str) -> KeysUnavailable {
    KeysUnavailable {
        reason: reason.to_owned(),
    }
}
