//! `GET /find`: events by header or by cause, so that a causal chain can be followed.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::header_index::Wanted;
use prombus::{ReadFrom, ReadLimit, StoredEvent};
use prombus_api::Code;
use prombus_api::http::{FindBy, FindQuery, write_find_page};

/// How many events a reply has by default.
const DEFAULT_EVENTS: u64 = 100;
/// The most events of a reply.
const MAX_EVENTS: u64 = 1_000;
/// About how many bytes of events a reply has at most.
const MAX_BYTES: usize = 8 << 20;

pub(super) async fn find(call: Call) -> Result<Response, ApiError> {
    let query = FindQuery::parse(&call.query()?)?;
    call.allow(Action::Subscribe, &query.topic, None)?;
    let topic = call.known(&query.topic)?;
    let limit = match query.limit.unwrap_or(DEFAULT_EVENTS) {
        0 => return Err(ApiError::new(Code::BadFrame, "limit: must be at least 1")),
        limit => limit.min(MAX_EVENTS) as usize,
    };
    let wanted = match query.by {
        FindBy::Header { name, value } => Wanted::Header { name, value },
        FindBy::CausedBy(id) => Wanted::CausedBy(id),
    };
    let gateway = call.gateway();
    let store = gateway.bus.store();
    let found = gateway
        .header_indexes
        .find(&**store, &topic, &wanted)
        .await?;
    let one = ReadLimit {
        events: 1,
        bytes: 1,
    };
    let (mut events, mut bytes, mut next) = (Vec::new(), 0, None);
    let after = query.after_seq.unwrap_or(0);
    for seq in found.seqs.into_iter().filter(|seq| *seq > after) {
        if events.len() >= limit || bytes >= MAX_BYTES {
            next = events.last().map(StoredEvent::seq);
            break;
        }
        let page = store.read(&topic, ReadFrom::Seq(seq), one).await?;
        // Retention or compaction may have removed it since.
        let event = page.events.into_iter().next();
        let event = event.filter(|event| event.seq() == seq && wanted.matches(event));
        bytes += event.as_ref().map_or(0, StoredEvent::stored_bytes);
        events.extend(event);
    }
    let mut out = Vec::with_capacity(bytes + 128);
    let records = events.iter().map(StoredEvent::json_bytes);
    write_find_page(&mut out, &topic, found.from_seq, records, next);
    Ok(reply::json_text(out))
}
