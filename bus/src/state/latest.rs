//! The latest event of each key. A key whose latest event is a tombstone is not there.

use crate::bus::Bus;
use crate::error::{InvalidField, StateError, TooManyKeys, UnknownTopic};
use prombus_interface::names::check_topic;
use prombus_store::{ReadFrom, ReadLimit, Store, StoredEvent};
use std::sync::Arc;

/// The most keys that are returned in one go.
pub(super) const MAX_PAGE_KEYS: usize = 10_000;
/// About how many bytes of events are returned in one go.
pub(super) const MAX_PAGE_BYTES: usize = 8 << 20;
/// How often the store is asked for one page, so that a stretch of tombstones ends it rather than keeping its reader
/// waiting.
const MAX_PAGE_READS: usize = 16;

/// Which keys are wanted: those that begin with `prefix`, behind `after`, in the order of their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// What they begin with.
    pub prefix: String,
    /// Only keys behind this one: the `next` of the page before.
    pub after: Option<String>,
    /// The most keys of one page, 1 to 10,000.
    pub limit: usize,
}

/// The latest events of some keys.
#[derive(Debug, Clone)]
pub struct KeyPage {
    /// One for each key, in the order of keys.
    pub events: Vec<StoredEvent>,
    /// The `after` of the next page; `None` where there is no more. A page may be short and still have a next one.
    pub next: Option<String>,
}

impl Default for KeyRange {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            after: None,
            limit: 1_000,
        }
    }
}

impl Bus {
    /// The latest event of one key.
    pub async fn latest(&self, topic: &str, key: &str) -> Result<Option<StoredEvent>, StateError> {
        let event = self.latest_or_tombstone(topic, key).await?;
        Ok(event.filter(|event| !event.is_tombstone()))
    }

    /// The same, with a tombstone where the key was deleted and that is still known.
    pub async fn latest_or_tombstone(
        &self,
        topic: &str,
        key: &str,
    ) -> Result<Option<StoredEvent>, StateError> {
        let named = self.core().topics.checked(topic)?;
        Ok(self.store().latest_event(&named.topic, key).await?)
    }

    /// The latest events of these keys in their order, without those that have none; of all keys if none is named.
    /// More than 10,000 keys or 8 MiB are refused: [`Bus::latest_page`] reads them in pages.
    pub async fn latest_by_key(
        &self,
        topic: &str,
        keys: &[&str],
    ) -> Result<Vec<StoredEvent>, StateError> {
        if keys.is_empty() {
            let range = KeyRange {
                limit: MAX_PAGE_KEYS,
                ..KeyRange::default()
            };
            let page = self.latest_page(topic, &range).await?;
            return match page.next {
                None => Ok(page.events),
                Some(_) => Err(too_many()),
            };
        }
        if keys.len() > MAX_PAGE_KEYS {
            return Err(too_many());
        }
        let topic = self.state_topic(topic)?;
        let (mut events, mut bytes) = (Vec::with_capacity(keys.len()), 0);
        for key in keys {
            let Some(event) = self.store().latest_event(&topic, key).await? else {
                continue;
            };
            bytes += event.stored_bytes();
            if bytes > MAX_PAGE_BYTES && !events.is_empty() {
                return Err(too_many());
            }
            events.extend(Some(event).filter(|event| !event.is_tombstone()));
        }
        Ok(events)
    }

    /// The latest events of a range of keys.
    pub async fn latest_page(&self, topic: &str, range: &KeyRange) -> Result<KeyPage, StateError> {
        range.check()?;
        let topic = self.state_topic(topic)?;
        Ok(live_page(&**self.store(), &topic, range).await?)
    }

    /// The shared name of a topic that is there.
    pub(super) fn state_topic(&self, topic: &str) -> Result<Arc<str>, StateError> {
        check_topic(topic)?;
        match self.store().topic(topic) {
            Some(info) => Ok(info.name),
            None => {
                let topic = topic.into();
                Err(UnknownTopic { topic }.into())
            }
        }
    }
}

impl KeyRange {
    pub(super) fn check(&self) -> Result<(), InvalidField> {
        if (1..=MAX_PAGE_KEYS).contains(&self.limit) {
            Ok(())
        } else {
            Err(InvalidField::new("limit", "must be 1 to 10000"))
        }
    }

    /// Whether a key behind the range has been reached.
    fn is_behind(&self, key: &str) -> bool {
        !key.starts_with(&self.prefix) && key > self.prefix.as_str()
    }
}

/// A page of the keys that are not tombstones.
async fn live_page(
    store: &dyn Store,
    topic: &Arc<str>,
    range: &KeyRange,
) -> Result<KeyPage, crate::error::ReadError> {
    let mut cursor = range.after.clone();
    let mut events = Vec::new();
    for _ in 0..MAX_PAGE_READS {
        let left = KeyRange {
            after: cursor.clone(),
            limit: range.limit - events.len(),
            ..range.clone()
        };
        let page = page_with_tombstones(store, topic, &left).await?;
        // A page that is short and not the last one is as large as pages get.
        let is_large = page.events.len() < left.limit;
        let live = page.events.into_iter();
        events.extend(live.filter(|event| !event.is_tombstone()));
        cursor = page.next;
        if cursor.is_none() || events.len() >= range.limit || is_large && !events.is_empty() {
            break;
        }
    }
    Ok(KeyPage {
        events,
        next: cursor,
    })
}

/// A page of keys as the store has them, tombstones included.
pub(super) async fn page_with_tombstones(
    store: &dyn Store,
    topic: &Arc<str>,
    range: &KeyRange,
) -> Result<KeyPage, crate::error::ReadError> {
    let prefix = range.prefix.as_str();
    let after = range.after.as_deref().filter(|after| *after >= prefix);
    if after.is_some_and(|after| range.is_behind(after)) {
        let (events, next) = (Vec::new(), None);
        return Ok(KeyPage { events, next });
    }
    let mut events = Vec::new();
    if after.is_none() && !prefix.is_empty() {
        // The store goes on behind a key, so the key that is the prefix itself is asked for by name.
        events.extend(store.latest_event(topic, prefix).await?);
    }
    let behind = after.or(Some(prefix).filter(|prefix| !prefix.is_empty()));
    let limit = ReadLimit {
        // One more tells whether there is a next page.
        events: range.limit + 1 - events.len(),
        bytes: MAX_PAGE_BYTES,
    };
    let found = store.read(topic, ReadFrom::Key(behind), limit).await?;
    let read = found.events.len();
    let within = |event: &StoredEvent| !range.is_behind(&event.key().unwrap_or_default());
    events.extend(found.events.into_iter().take_while(within));
    let is_cut = events.len() > range.limit;
    events.truncate(range.limit);
    let last = events.last().and_then(StoredEvent::key);
    let last = last.map(|key| key.into_owned());
    // A store that returned fewer than it was asked for has no more, or stopped for their bytes.
    let next = match &last {
        Some(_) if is_cut => last,
        Some(key) if read > 0 && read < limit.events => {
            let one = ReadLimit { events: 1, ..limit };
            let more = store.read(topic, ReadFrom::Key(Some(key)), one).await?;
            last.filter(|_| more.events.first().is_some_and(within))
        }
        _ => None,
    };
    Ok(KeyPage { events, next })
}

fn too_many() -> StateError {
    let (max_keys, max_bytes) = (MAX_PAGE_KEYS, MAX_PAGE_BYTES);
    TooManyKeys {
        max_keys,
        max_bytes,
    }
    .into()
}
