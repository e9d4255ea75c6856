//! Key sets over HTTP.

use prombus_gateway::auth::{Fetched, KeySource, KeysUnavailable};
use std::sync::Arc;
use std::time::Duration;

/// How long one attempt to get a key set may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a key set that are read; a larger one is refused.
const MAX_KEY_SET_BYTES: u64 = 1 << 20;

/// The key set at a URL.
pub(crate) fn at(url: &str) -> Arc<dyn KeySource> {
    let url: Arc<str> = url.into();
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(FETCH_TIMEOUT))
        .build()
        .into();
    Arc::new(move || -> Fetched {
        let (url, agent) = (url.clone(), agent.clone());
        Box::pin(async move {
            let fetching = tokio::task::spawn_blocking(move || fetch(&agent, &url));
            fetching.await.unwrap_or_else(|_| {
                Err(KeysUnavailable {
                    reason: "fetching was cancelled".to_owned(),
                })
            })
        })
    })
}

fn fetch(agent: &ureq::Agent, url: &str) -> Result<Vec<u8>, KeysUnavailable> {
    let got = agent.get(url).call().and_then(|mut response| {
        let body = response.body_mut().with_config();
        body.limit(MAX_KEY_SET_BYTES).read_to_vec()
    });
    got.map_err(|error| KeysUnavailable {
        reason: format!("{url}: {error}"),
    })
}
