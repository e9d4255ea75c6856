//! Stores by URL.

mod replicated;

use anyhow::{Context, bail};
use prombus::{Store, SystemClock};
use prombus_log::{FileStore, Listener, LogOptions};
use prombus_store::Damage;
use prombus_store::memory::MemoryStore;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Opens `memory:`, `file:PATH`, `nats://…` or `mongodb://…`, and says in the log what opening found.
pub(crate) async fn open(url: &str) -> anyhow::Result<Arc<dyn Store>> {
    if url == "memory:" {
        return Ok(Arc::new(MemoryStore::new(Arc::new(SystemClock))));
    }
    if url.starts_with("nats://") || url.starts_with("tls://") {
        return replicated::on_jetstream(url).await;
    }
    if url.starts_with("mongodb://") {
        return replicated::on_mongodb(url).await;
    }
    let Some(path) = url.strip_prefix("file:").filter(|path| !path.is_empty()) else {
        bail!(
            "{url:?} is no store of this version; use memory:, file:PATH, as in file:./prombus-data, \
             nats://HOST:PORT/STREAM or mongodb://HOST:PORT/DATABASE"
        );
    };
    let listener = Arc::new(LogDamage::default());
    let options = LogOptions {
        listener: Some(listener.clone()),
        ..LogOptions::default()
    };
    let (store, report) = FileStore::open_with(Path::new(path), Arc::new(SystemClock), options)
        .with_context(|| format!("cannot open the store {url}"))?;
    report.damage.iter().for_each(log_damage);
    listener.is_open.store(true, Ordering::Relaxed);
    if let Some(cut) = &report.cut_tail {
        tracing::warn!(
            bytes = cut.bytes,
            events = cut.events.len(),
            "the end of the log was torn and is cut off; it was never acknowledged"
        );
    }
    Ok(Arc::new(store))
}

/// Logs damage as it is found. What opening finds is in its report.
#[derive(Default)]
struct LogDamage {
    is_open: AtomicBool,
}

impl Listener for LogDamage {
    fn tail_moved(&self, _topic: &str, _tail_seq: u64) {}

    fn topics_changed(&self) {}

    fn damage_found(&self, damage: &Damage) {
        if self.is_open.load(Ordering::Relaxed) {
            log_damage(damage);
        }
    }
}

fn log_damage(damage: &Damage) {
    tracing::error!(%damage, "the log is damaged; the rest stays readable");
}
