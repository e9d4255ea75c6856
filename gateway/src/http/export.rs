//! `GET /export`: all events of a stretch of time, streamed in the order of time. While one page goes out the next is
//! read; a client that does not read holds nothing but those two.

use super::call::Call;
use super::events::event_by_id;
use super::gzip::{self, Gzip};
use super::message::Response;
use super::reply;
use super::stream::{self, ChunkSender, Gone, StreamError};
use crate::api_error::ApiError;
use crate::auth::{Action, Grant};
use crate::cloudevents::{self, write_event};
use crate::gateway::Gateway;
use hyper::header::{self, HeaderValue};
use prombus::{Page, ReadError, ReadFrom, ReadLimit, StoredEvent, TimeRange};
use prombus_api::Code;
use prombus_api::http::ExportQuery;
use std::borrow::Cow;
use std::sync::Arc;

/// How much is read at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 16_384,
    bytes: 2 << 20,
};
/// How much is sent at a time.
const PIECE_BYTES: usize = 256 << 10;
const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const CLOUDEVENTS_BATCH: HeaderValue =
    HeaderValue::from_static("application/cloudevents-batch+json");

struct Export {
    gateway: Arc<Gateway>,
    grant: Grant,
    topic: Arc<str>,
    range: TimeRange,
    key: Option<String>,
    is_upcast: bool,
    format: Format,
    gzip: Option<Gzip>,
}

/// How events are written and strung together.
struct Format {
    is_records: bool,
    is_ndjson: bool,
    is_begun: bool,
}

pub(super) async fn export(call: Call) -> Result<Response, ApiError> {
    let query = call.query()?;
    let wanted = ExportQuery::parse(&query)?;
    let gzip = query.flag("gzip")?;
    let accepted = cloudevents::Format::accepted(&call.parts.headers);
    let is_ndjson = match accepted {
        cloudevents::Format::CloudEventsBatch => query.flag("ndjson")?.unwrap_or(false),
        _ => wanted.ndjson,
    };
    call.allow(Action::Subscribe, &wanted.topic, None)?;
    let topic = call.known(&wanted.topic)?;
    let gateway = call.gateway().clone();
    let after = match &wanted.after_id {
        Some(id) => Some(place_of(&gateway, &topic, id).await?),
        None => None,
    };
    let gzip = gzip.unwrap_or_else(|| {
        let accepted = call.parts.headers.get(header::ACCEPT_ENCODING);
        let accepted = accepted.and_then(|value| value.to_str().ok());
        accepted.is_some_and(gzip::is_accepted)
    });
    let export = Export {
        gateway,
        grant: call.grant.clone(),
        topic,
        range: TimeRange {
            from_ts: wanted.from_ts.unwrap_or(0),
            to_ts: wanted.to_ts.unwrap_or(u64::MAX),
            after,
        },
        key: wanted.key,
        is_upcast: wanted.upcast,
        format: Format {
            is_records: accepted.is_records(),
            is_ndjson,
            is_begun: false,
        },
        gzip: gzip.then(Gzip::new),
    };
    if export.is_upcast {
        export.gateway.bus.load_schemas(&export.topic).await?;
    }
    // The first page is read before the reply begins, so that an error still has its status.
    let first = export.read(None).await?;
    let body = stream::body(|chunks| export.send(first, chunks));
    let content_type = match (is_ndjson, accepted.is_records()) {
        (true, _) => NDJSON,
        (false, true) => JSON,
        (false, false) => CLOUDEVENTS_BATCH,
    };
    let mut response = reply::typed(content_type, body);
    let headers = response.headers_mut();
    let vary = HeaderValue::from_static("accept, accept-encoding");
    headers.insert(header::VARY, vary);
    if gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// The (ts, seq) of an event.
async fn place_of(gateway: &Gateway, topic: &Arc<str>, id: &str) -> Result<(u64, u64), ApiError> {
    let event = event_by_id(&**gateway.bus.store(), topic, id).await?;
    let place = event.map(|event| (event.ts(), event.seq()));
    place.ok_or_else(|| {
        let message = format!("no event {id:?} in topic {topic}");
        ApiError::new(Code::UnknownId, message)
    })
}

impl Export {
    fn read(
        &self,
        after: Option<(u64, u64)>,
    ) -> impl Future<Output = Result<Page, ReadError>> + Send + use<> {
        let range = TimeRange {
            after: after.or(self.range.after),
            ..self.range
        };
        let store = self.gateway.bus.store();
        store.read(&self.topic, ReadFrom::Time(range), PAGE)
    }

    async fn send(mut self, first: Page, chunks: ChunkSender) -> Result<(), StreamError> {
        let mut page = first;
        loop {
            if self.grant.is_expired(self.gateway.now_ms()) {
                return Err(StreamError("token expired".to_owned()));
            }
            let next = page.next_time.map(|after| self.read(Some(after)));
            let is_last = next.is_none();
            let sending = self.send_page(&page.events, is_last, &chunks);
            let reading = async {
                match next {
                    Some(next) => next.await.map(Some),
                    None => Ok(None),
                }
            };
            let (sent, read) = tokio::join!(sending, reading);
            if let Err(Gone) = sent? {
                return Ok(());
            }
            match read.map_err(|error| StreamError(error.to_string()))? {
                Some(next) => page = next,
                None => return Ok(()),
            }
        }
    }

    async fn send_page(
        &mut self,
        events: &[StoredEvent],
        is_last: bool,
        chunks: &ChunkSender,
    ) -> Result<Result<(), Gone>, StreamError> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        for event in events {
            let is_wanted = match &self.key {
                Some(key) => event.key().as_deref() == Some(key),
                None => true,
            };
            if !is_wanted {
                continue;
            }
            let upcast = self
                .is_upcast
                .then(|| self.gateway.bus.upcast(event.clone()));
            let record = self.format.encode(upcast.as_ref().unwrap_or(event));
            if !piece.is_empty() && piece.len() + record.len() + 1 > PIECE_BYTES {
                let full = std::mem::replace(&mut piece, Vec::with_capacity(PIECE_BYTES));
                if let Err(gone) = self.send_piece(full, false, chunks).await? {
                    return Ok(Err(gone));
                }
            }
            self.format.add(&mut piece, &record);
        }
        if is_last {
            self.format.end(&mut piece);
        }
        self.send_piece(piece, is_last, chunks).await
    }

    async fn send_piece(
        &mut self,
        mut piece: Vec<u8>,
        is_last: bool,
        chunks: &ChunkSender,
    ) -> Result<Result<(), Gone>, StreamError> {
        if let Some(gzip) = self.gzip.take() {
            let broken = |error: std::io::Error| StreamError(error.to_string());
            let (gzip, mut out) = gzip.compress(piece).await.map_err(broken)?;
            if is_last {
                out.extend(gzip.finish().map_err(broken)?)
            } else {
                self.gzip = Some(gzip)
            }
            piece = out;
        }
        Ok(chunks.send(piece).await)
    }
}

impl Format {
    fn encode<'e>(&self, event: &'e StoredEvent) -> Cow<'e, [u8]> {
        if self.is_records {
            return Cow::Borrowed(event.json_bytes());
        }
        let mut out = Vec::with_capacity(event.stored_bytes());
        write_event(&mut out, event, &[]);
        Cow::Owned(out)
    }

    fn add(&mut self, out: &mut Vec<u8>, record: &[u8]) {
        if self.is_ndjson {
            out.extend_from_slice(record);
            out.push(b'\n');
            return;
        }
        out.push(if std::mem::replace(&mut self.is_begun, true) {
            b','
        } else {
            b'['
        });
        out.extend_from_slice(record);
    }

    fn end(&self, out: &mut Vec<u8>) {
        match (self.is_ndjson, self.is_begun) {
            (true, _) => {}
            (false, true) => out.push(b']'),
            (false, false) => out.extend_from_slice(b"[]"),
        }
    }
}
