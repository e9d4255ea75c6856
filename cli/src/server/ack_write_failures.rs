//! Logs when the store does not take what groups have acknowledged, and when it does again.

use prombus::UnwrittenGroups;
use std::time::Duration;
use tokio::sync::watch;

/// Failures are logged at most this often; the counts say how many there were.
const QUIET: Duration = Duration::from_secs(1);

/// Logs until the bus is gone.
pub(super) async fn log_changes(mut changes: watch::Receiver<UnwrittenGroups>) {
    let mut reported = UnwrittenGroups::default();
    while changes.changed().await.is_ok() {
        let now = changes.borrow_and_update().clone();
        if now.failures > reported.failures {
            let (groups, failures) = (now.groups, now.failures);
            let cause = now.latest.as_deref().unwrap_or("written since");
            tracing::error!(groups, failures, cause, "acknowledgements are not stored");
        } else if now.groups == 0 && reported.groups > 0 {
            tracing::info!("acknowledgements are stored again");
        }
        reported = now;
        tokio::time::sleep(QUIET).await;
    }
}
