//! Stores by URL.

use anyhow::{Context, bail};
use prombus::{Store, SystemClock};
use prombus_store::file::FileStore;
use prombus_store::memory::MemoryStore;
use std::path::Path;
use std::sync::Arc;

/// Opens `memory:` or `file:PATH`, and says in the log what opening found.
pub(crate) fn open(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    if url == "memory:" {
        return Ok(Arc::new(MemoryStore::new(Arc::new(SystemClock))));
    }
    let Some(path) = url.strip_prefix("file:").filter(|path| !path.is_empty()) else {
        bail!(
            "{url:?} is no store of this version; use memory: or file:PATH, as in file:./prombus-data"
        );
    };
    let (store, report) =
        FileStore::open(Path::new(path)).with_context(|| format!("cannot open the store {url}"))?;
    for damage in &report.damage {
        tracing::error!(%damage, "the log is damaged; the rest stays readable");
    }
    if let Some(cut) = &report.cut_tail {
        tracing::warn!(
            bytes = cut.bytes,
            events = cut.events.len(),
            "the end of the log was torn and is cut off; it was never acknowledged"
        );
    }
    Ok(Arc::new(store))
}
