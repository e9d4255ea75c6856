//! The readable collections of a store in MongoDB: kept up to date beside the server, never needed by it.

use prombus::Bus;
use prombus_mongo::error::MongoError;
use prombus_mongo::{Mirror, MirrorOptions};
use prombus_replicated::mongo::MongoUrl;
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::task::AbortHandle;

/// How long a mirror that failed rests before it is begun anew.
const RESTART: Duration = Duration::from_secs(30);

/// Starts the mirror, where the store's URL asks for one.
pub(super) fn start(bus: &Bus, store: &str) -> anyhow::Result<Option<AbortHandle>> {
    if !store.starts_with("mongodb://") {
        return Ok(None);
    }
    let url = MongoUrl::parse(store)?;
    if !url.readable {
        return Ok(None);
    }
    // No other process has this name, not even a later one that happens to get the same number.
    let holder = format!(
        "{}-{:016x}",
        std::process::id(),
        RandomState::new().hash_one("mirror")
    );
    let mirroring = tokio::spawn(keep(bus.clone(), url.connection, holder));
    Ok(Some(mirroring.abort_handle()))
}

/// Mirrors for as long as the server runs. What fails is logged: readers of the collections see old documents, and
/// nothing else depends on them.
async fn keep(bus: Bus, url: String, holder: String) {
    loop {
        let Err(error) = run(&bus, &url, &holder).await;
        tracing::error!(%error, "the collections events and cursors are not kept up to date; trying again later");
        tokio::time::sleep(RESTART).await;
    }
}

async fn run(bus: &Bus, url: &str, holder: &str) -> Result<Infallible, MongoError> {
    let database = prombus_mongo::open(url).await?;
    let options = MirrorOptions::new(holder);
    Mirror::open(bus, &database, options).await?.run().await
}
