//! `/dlq`: the dead letters of a topic are listed and removed. Each says whether it was sent to its topic again; what is
//! not a dead letter is listed as it is, for anybody who may publish to `dlq.<topic>` may put it there.

use super::call::{Call, forbidden};
use super::events::{event_by_id, first_seq, page_limit};
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use prombus::{ReadFrom, ReadLimit, StartAt, dead_letter_topic};
use prombus_api::Code;
use prombus_api::http::{
    ReadQuery, RemoveLettersQuery, RemovedLetters, WhichLetters, write_dead_letter,
    write_event_page,
};
use std::sync::Arc;

/// The most ids that one request names.
const MAX_IDS: usize = 10_000;
/// How many dead letters are looked through at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 1_024,
    bytes: 4 << 20,
};

/// A page of the dead letters that were not removed.
pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    let wanted = ReadQuery::parse(&call.query()?)?;
    call.check(&wanted.topic, None)?;
    let letters = dead_letter_topic(&wanted.topic);
    call.allow(Action::Subscribe, &letters, None)?;
    let start = wanted.start.unwrap_or(StartAt::Earliest);
    if start == StartAt::Latest {
        let message = "from: expected earliest, ts, afterId or seq";
        return Err(ApiError::new(Code::BadFrame, message));
    }
    let mut out = Vec::new();
    let Ok(letters) = call.known(&letters) else {
        // Nothing has died of it yet.
        call.known(&wanted.topic)?;
        write_event_page(&mut out, &letters, [], None);
        return Ok(reply::json_text(out));
    };
    let limit = page_limit(wanted.limit)?;
    let bus = &call.gateway().bus;
    let store = bus.store();
    let marks = bus.dead_letter_marks(&letters).await?;
    let from_seq = first_seq(&**store, &letters, start).await?;
    let page = store.read(&letters, ReadFrom::Seq(from_seq), limit).await?;
    let next = Some(page.next_seq).filter(|next| *next <= page.tail_seq);
    let kept = page.events.iter();
    let kept = kept.filter(|letter| !marks.is_removed(letter.seq()));
    let records: Vec<Vec<u8>> = kept
        .map(|letter| {
            let mut record = Vec::with_capacity(letter.stored_bytes() + 32);
            let is_redriven = marks.is_redriven(letter.seq());
            write_dead_letter(&mut record, letter.json_bytes(), is_redriven);
            record
        })
        .collect();
    let records = records.iter().map(Vec::as_slice);
    write_event_page(&mut out, &letters, records, next);
    Ok(reply::json_text(out))
}

/// Removes dead letters: those that are named, those that were redriven, or all.
pub(super) async fn remove(call: Call) -> Result<Response, ApiError> {
    let wanted = RemoveLettersQuery::parse(&call.query()?)?;
    call.check(&wanted.topic, None)?;
    let letters = dead_letter_topic(&wanted.topic);
    let may = |topic: &str| call.grant.policy.may(Action::Admin, topic, None);
    if !may(&letters) && !may(&wanted.topic) {
        return Err(forbidden(Action::Admin, &letters, None));
    }
    let mut reply = RemovedLetters {
        topic: wanted.topic.clone(),
        ..RemovedLetters::default()
    };
    let Ok(letters) = call.known(&letters) else {
        call.known(&wanted.topic)?;
        if let WhichLetters::Ids(ids) = wanted.which {
            reply.unknown = ids;
        }
        return Ok(reply::json(&reply));
    };
    let seqs = match &wanted.which {
        WhichLetters::Ids(ids) => named(&call, &letters, ids, &mut reply).await?,
        WhichLetters::Redriven => matching(&call, &letters, true).await?,
        WhichLetters::All => matching(&call, &letters, false).await?,
    };
    reply.removed = seqs.len() as u64;
    if !seqs.is_empty() {
        let bus = &call.gateway().bus;
        bus.remove_dead_letters(&letters, &seqs).await?;
    }
    Ok(reply::json(&reply))
}

async fn named(
    call: &Call,
    letters: &Arc<str>,
    ids: &[String],
    reply: &mut RemovedLetters,
) -> Result<Vec<u64>, ApiError> {
    if ids.len() > MAX_IDS {
        let message = format!("ids: at most {MAX_IDS} at a time");
        return Err(ApiError::new(Code::TooLarge, message));
    }
    let bus = &call.gateway().bus;
    let marks = bus.dead_letter_marks(letters).await?;
    let mut seqs = Vec::with_capacity(ids.len());
    for id in ids {
        let letter = event_by_id(&**bus.store(), letters, id).await?;
        match letter.filter(|letter| !marks.is_removed(letter.seq())) {
            Some(letter) => seqs.push(letter.seq()),
            None => reply.unknown.push(id.clone()),
        }
    }
    seqs.sort_unstable();
    seqs.dedup();
    Ok(seqs)
}

/// All dead letters that are there now, or those of them that were redriven.
async fn matching(
    call: &Call,
    letters: &Arc<str>,
    only_redriven: bool,
) -> Result<Vec<u64>, ApiError> {
    let bus = &call.gateway().bus;
    let (store, marks) = (bus.store(), bus.dead_letter_marks(letters).await?);
    let tail = store.topic(letters).map_or(0, |info| info.tail_seq);
    let (mut seqs, mut next_seq) = (Vec::new(), 1);
    while next_seq <= tail {
        let page = store.read(letters, ReadFrom::Seq(next_seq), PAGE).await?;
        let found = page.events.iter().map(prombus::StoredEvent::seq);
        seqs.extend(found.filter(|&seq| {
            seq <= tail && !marks.is_removed(seq) && (!only_redriven || marks.is_redriven(seq))
        }));
        next_seq = page.next_seq.max(next_seq + 1);
    }
    Ok(seqs)
}
