//! `GET /history`: the samples of the last minutes, at once or as they are taken.

use super::call::Call;
use super::message::Response;
use super::reply;
use super::status::allow_everything;
use super::stream::{self, ChunkSender, Gone, StreamError};
use crate::api_error::ApiError;
use crate::auth::Grant;
use crate::gateway::Gateway;
use crate::history::{HISTORY_INTERVAL_MS, Sample};
use hyper::header::{self, HeaderName, HeaderValue};
use prombus_api::http::{History, HistoryQuery};
use std::sync::Arc;

/// Tells proxies that gather replies to let this one through.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) async fn history(call: Call) -> Result<Response, ApiError> {
    let wanted = HistoryQuery::parse(&call.query()?)?;
    allow_everything(&call, "history")?;
    let after = wanted.after.unwrap_or(0);
    if !wanted.follow {
        return Ok(reply::json(&page(call.gateway(), after)));
    }
    let (gateway, grant) = (call.gateway().clone(), call.grant.clone());
    let body = stream::body(|chunks| follow(gateway, grant, after, chunks));
    let mut response = reply::typed(HeaderValue::from_static("text/event-stream"), body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// Sends samples as they are taken, until the token or the server is at its end.
async fn follow(
    gateway: Arc<Gateway>,
    grant: Grant,
    mut after: u64,
    chunks: ChunkSender,
) -> Result<(), StreamError> {
    let mut taken = gateway.history.watch();
    loop {
        taken.borrow_and_update();
        let page = page(&gateway, after);
        after = page.ts.last().copied().unwrap_or(after);
        if let Err(Gone) = chunks.send(event(&page)).await {
            return Ok(());
        }
        tokio::select! {
            changed = taken.changed() => if changed.is_err() {
                return Ok(());
            },
            () = gateway.drained() => return Ok(()),
        }
        if grant.is_expired(gateway.now_ms()) {
            return Ok(());
        }
    }
}

fn event(page: &History) -> Vec<u8> {
    let mut out = b"data: ".to_vec();
    out.extend(serde_json::to_vec(page).unwrap_or_default());
    out.extend_from_slice(b"\n\n");
    out
}

fn page(gateway: &Gateway, after: u64) -> History {
    let samples = gateway.history.samples_after(after);
    let column = |value: fn(&Sample) -> u64| samples.iter().map(value).collect::<Vec<u64>>();
    History {
        now_ms: gateway.now_ms(),
        interval_ms: HISTORY_INTERVAL_MS,
        ts: column(|sample| sample.ts),
        published: column(|sample| sample.published),
        delivered: column(|sample| sample.delivered),
        acked: column(|sample| sample.acked),
        nacked: column(|sample| sample.nacked),
        redelivered: column(|sample| sample.redelivered),
        dead_lettered: column(|sample| sample.dead_lettered),
        rate_limited: column(|sample| sample.rate_limited),
        fsyncs: column(|sample| sample.fsyncs),
        fsync_p50_us: column(|sample| sample.fsync_p50_us),
        fsync_p99_us: column(|sample| sample.fsync_p99_us),
        connections: column(|sample| sample.connections),
        store_bytes: column(|sample| sample.store_bytes),
        lag: column(|sample| sample.lag),
    }
}
