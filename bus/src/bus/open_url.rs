//! Opening a bus with its store in one call, by the URL of the store. The only place of this crate that knows a store, and
//! only those whose features are on; any other one is opened by its own crate and given to [`Bus::open`].

use super::Bus;
use crate::error::{OpenError, OpenUrlError};
use crate::options::BusOptions;
use prombus_store::Store;
use std::sync::Arc;

impl Bus {
    /// Opens a bus on the store of this URL, inside a tokio runtime that has its timers enabled: `memory:` (feature
    /// `memory`), or `file:PATH` (feature `file`), whose folder is made where it does not exist.
    ///
    /// ```
    /// # #[cfg(feature = "memory")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use prombus::{Bus, BusOptions, PublishOptions};
    ///
    /// let bus = Bus::open_url("memory:", BusOptions::default())?;
    /// bus.publish("orders", &17, &PublishOptions::default()).await?;
    /// bus.close().await?;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "memory"))]
    /// # fn main() {}
    /// ```
    pub fn open_url(url: &str, options: BusOptions) -> Result<Self, OpenUrlError> {
        // A store on the disk opens its files first, so what can be refused is refused before.
        options.check().map_err(OpenError::from)?;
        let store = open_store(url, &options)?;
        Ok(Self::open(store, options)?)
    }
}

#[cfg_attr(
    not(any(feature = "file", feature = "memory")),
    allow(unused_variables, reason = "there is no store to open")
)]
fn open_store(url: &str, options: &BusOptions) -> Result<Arc<dyn Store>, OpenUrlError> {
    #[cfg(feature = "memory")]
    if url == "memory:" {
        let store = prombus_store::memory::MemoryStore::new(options.clock.clone());
        return Ok(Arc::new(store));
    }
    #[cfg(feature = "file")]
    if let Some(path) = url.strip_prefix("file:").filter(|path| !path.is_empty()) {
        let clock = options.clock.clone();
        let log_options = prombus_log::LogOptions::default();
        let opened =
            prombus_log::FileStore::open_with(std::path::Path::new(path), clock, log_options);
        let (store, report) = opened.map_err(|error| OpenUrlError::Store {
            cause: error.to_string(),
        })?;
        for damage in &report.damage {
            tracing::error!(%url, ?damage, "the log is damaged");
        }
        return Ok(Arc::new(store));
    }
    Err(OpenUrlError::UnknownStore {
        url: url.to_owned(),
    })
}

#[cfg(all(test, feature = "file", feature = "memory"))]
mod tests {
    use super::*;
    use crate::publish::PublishOptions;

    #[tokio::test]
    async fn a_folder_is_made_and_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file:{}", folder.path().join("data").display());
        for seq in 1..=2 {
            let bus = Bus::open_url(&url, BusOptions::default()).unwrap();
            let published = bus.publish("t", &seq, &PublishOptions::default()).await;
            assert_eq!(published.unwrap().seq, seq);
            bus.close().await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_no_store_is_refused_with_advice() {
        for url in ["", "file:", "memory", "nats://localhost:4222/s", "data"] {
            let refused = Bus::open_url(url, BusOptions::default()).unwrap_err();
            assert!(refused.to_string().contains("file:PATH"), "{refused}");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("letter.txt"), "dear").unwrap();
        let url = format!("file:{}", folder.path().display());
        let refused = Bus::open_url(&url, BusOptions::default()).unwrap_err();
        assert!(refused.to_string().contains("letter.txt"), "{refused}");
        let bus = Bus::open_url("memory:", BusOptions::default()).unwrap();
        bus.close().await.unwrap();
    }
}
