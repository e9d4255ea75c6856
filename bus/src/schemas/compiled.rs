//! The schemas that publishers are held to, compiled once and kept in memory.

use super::SCHEMA_VERSION_HEADER;
use super::record::{SchemaRecord, schemas_key};
use crate::error::{ReadError, SchemaInvalid, StoreFailed};
use foldhash::HashMap;
use prombus_schema::{Schema, Upcast, Validator};
use prombus_store::RwLockExt;
use prombus_store::{Answer, Draft, Keyed, Store};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock, RwLock};
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

/// The most topics whose schemas are kept in memory; beyond it the memory starts afresh.
const MAX_CACHED_TOPICS: usize = 1_024;
/// The most bytes of schema texts that are kept in memory; beyond it the memory starts afresh.
const MAX_CACHED_BYTES: usize = 64 << 20;

/// The bus's memory of schemas.
pub(crate) struct Schemas {
    store: Arc<dyn Store>,
    cached: RwLock<Cached>,
}

#[derive(Default)]
struct Cached {
    by_topic: HashMap<Arc<str>, Arc<TopicSchemas>>,
    /// Bytes of their texts.
    bytes: usize,
}

/// The versions of a topic's schema.
#[derive(Debug)]
pub(crate) struct TopicSchemas {
    topic: Arc<str>,
    generation: u64,
    versions: Vec<Version>,
}

#[derive(Debug)]
struct Version {
    version: u32,
    text: String,
    /// The header that says so.
    stamp: [(String, String); 1],
    /// Compiled when the first event comes.
    compiled: OnceLock<Result<Compiled, String>>,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    /// The steps from the version before.
    upcast: Upcast,
}

impl Schemas {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            cached: RwLock::default(),
        }
    }

    /// The schemas of a topic in a state, or a later one. A store that has to wait before it can tell is asked in the
    /// background: until then the state before applies, as if the event had come a moment earlier.
    pub(crate) fn of(
        self: &Arc<Self>,
        topic: &Arc<str>,
        generation: u64,
    ) -> Result<Arc<TopicSchemas>, StoreFailed> {
        let cached = self.cached(topic);
        if let Some(cached) = &cached
            && cached.generation >= generation
        {
            return Ok(cached.clone());
        }
        let mut answer = self.store.get(&schemas_key(topic));
        match poll_once(&mut answer) {
            Poll::Ready(answer) => self.keep(topic, generation, answer),
            Poll::Pending => {
                if let Ok(runtime) = Handle::try_current() {
                    let (schemas, topic) = (self.clone(), topic.clone());
                    runtime.spawn(async move {
                        // The next publish retries where this failed.
                        let _ = schemas.keep(&topic, generation, answer.await);
                    });
                }
                cached.ok_or_else(|| StoreFailed {
                    cause: format!("the schemas of topic {topic} are being loaded; try again")
                        .into(),
                })
            }
        }
    }

    /// Loads the schemas of a topic, for a reader that cannot do with those of a state before.
    pub(crate) async fn load(
        &self,
        topic: &Arc<str>,
        generation: u64,
    ) -> Result<Arc<TopicSchemas>, StoreFailed> {
        match self.cached(topic) {
            Some(cached) if cached.generation >= generation => Ok(cached),
            _ => {
                let answer = self.store.get(&schemas_key(topic)).await;
                self.keep(topic, generation, answer)
            }
        }
    }

    fn cached(&self, topic: &str) -> Option<Arc<TopicSchemas>> {
        let cached = self.cached.read_guard();
        cached.by_topic.get(topic).cloned()
    }

    fn keep(
        &self,
        topic: &Arc<str>,
        generation: u64,
        answer: Result<Option<Keyed>, ReadError>,
    ) -> Result<Arc<TopicSchemas>, StoreFailed> {
        let failed = |cause: String| StoreFailed {
            cause: cause.into(),
        };
        let stored = answer.map_err(|error| failed(error.to_string()))?;
        let record = match stored {
            Some(stored) => SchemaRecord::from_bytes(topic, &stored.value)
                .map_err(|error| failed(error.to_string()))?,
            None => SchemaRecord::default(),
        };
        let schemas = Arc::new(TopicSchemas {
            topic: topic.clone(),
            generation: record.generation.max(generation),
            versions: record.versions.into_iter().map(Version::new).collect(),
        });
        let mut cached = self.cached.write_guard();
        if cached.by_topic.len() >= MAX_CACHED_TOPICS || cached.bytes >= MAX_CACHED_BYTES {
            *cached = Cached::default();
        }
        cached.bytes += schemas.bytes();
        if let Some(replaced) = cached.by_topic.insert(topic.clone(), schemas.clone()) {
            cached.bytes -= replaced.bytes();
        }
        Ok(schemas)
    }
}

impl TopicSchemas {
    /// Whether a payload is found to be JSON without insignificant whitespace and to fit its version, in one pass over its
    /// text.
    pub(crate) fn fits_compact(&self, headers: &[(String, String)], payload: &str) -> bool {
        let version = match named_version(headers) {
            Some(named) => self.version(named),
            None => self.versions.last(),
        };
        let compiled = version.and_then(|version| version.compiled().as_ref().ok());
        compiled.is_some_and(|compiled| compiled.validator.fits_compact(payload))
    }

    /// Holds an event against the version that its publisher names, else the latest, unless it is known to fit, and gives
    /// its headers with that version among them. A tombstone passes, because it has no state to describe.
    pub(crate) fn stamp<'a>(
        &'a self,
        draft: &Draft<'a>,
        fits: bool,
    ) -> Result<Cow<'a, [(String, String)]>, SchemaInvalid> {
        let unchanged = Cow::Borrowed(draft.headers);
        let Some(latest) = self.versions.last() else {
            return Ok(unchanged);
        };
        if draft.tombstone && draft.key.is_some() {
            return Ok(unchanged);
        }
        let named = named_version(draft.headers);
        let version = match named {
            None => Some(latest),
            Some(named) => self.version(named),
        };
        let Some(version) = version else {
            let named = named.unwrap_or_default();
            let reason = format!("{SCHEMA_VERSION_HEADER} {named:?} is no version of the schema");
            return Err(self.invalid(latest, String::new(), reason));
        };
        if !fits {
            self.check(version, draft.payload)?;
        }
        Ok(match (named, draft.headers) {
            (Some(_), _) => unchanged,
            (None, []) => Cow::Borrowed(&latest.stamp),
            (None, headers) => headers.iter().chain(&latest.stamp).cloned().collect(),
        })
    }

    fn version(&self, named: &str) -> Option<&Version> {
        let number: u32 = named.parse().ok()?;
        self.versions.iter().find(|known| known.version == number)
    }

    /// A payload of an earlier version as one of the latest, with the number of that. `None` where it is of the latest
    /// already, where a version between is gone, and where the result would not fit.
    pub(crate) fn upcast(&self, from: u32, payload: &str) -> Option<(u32, Value)> {
        let latest = self.versions.last()?;
        let later = self.versions.iter().filter(|known| known.version > from);
        let mut value = serde_json::from_str(payload).ok()?;
        let mut before = from;
        for version in later {
            if version.version != before + 1 {
                return None;
            }
            version.compiled().as_ref().ok()?.upcast.apply(&mut value);
            before = version.version;
        }
        if before == from {
            return None;
        }
        let compiled = latest.compiled().as_ref().ok()?;
        compiled.validator.check_value(&value).ok()?;
        Some((latest.version, value))
    }

    fn check(&self, version: &Version, payload: &str) -> Result<(), SchemaInvalid> {
        match version.compiled() {
            Ok(compiled) => compiled
                .validator
                .check(payload)
                .map_err(|invalid| self.invalid(version, invalid.path, invalid.reason)),
            Err(reason) => Err(self.invalid(version, String::new(), reason.clone())),
        }
    }

    fn invalid(&self, version: &Version, path: String, reason: String) -> SchemaInvalid {
        SchemaInvalid {
            topic: self.topic.clone(),
            version: version.version,
            path,
            reason,
        }
    }

    fn bytes(&self) -> usize {
        self.versions.iter().map(|version| version.text.len()).sum()
    }
}

impl Version {
    fn new(stored: super::StoredVersion) -> Self {
        Self {
            version: stored.version,
            text: stored.schema,
            stamp: [(SCHEMA_VERSION_HEADER.to_owned(), stored.version.to_string())],
            compiled: OnceLock::new(),
        }
    }

    fn compiled(&self) -> &Result<Compiled, String> {
        self.compiled.get_or_init(|| {
            let compile = |schema: Schema| {
                let validator = Validator::new(&schema)?;
                let upcast = Upcast::of(schema.root())?;
                Ok(Compiled { validator, upcast })
            };
            let compiled = Schema::parse(&self.text).and_then(compile);
            compiled.map_err(|error| error.to_string())
        })
    }
}

/// The version that a publisher names.
fn named_version(headers: &[(String, String)]) -> Option<&str> {
    let own = headers
        .iter()
        .find(|(name, _)| name == SCHEMA_VERSION_HEADER);
    own.map(|(_, named)| named.as_str())
}

/// The answer, where it is there without waiting.
fn poll_once<T, E>(answer: &mut Answer<T, E>) -> Poll<Result<T, E>> {
    answer
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}
