//! Spelling a PUBLISH frame, on the publisher's own thread and before any lock is taken.

use super::{PublishExtras, PublishOptions};
use crate::core::Core;
use crate::error::{BadValue, PublishError};
use prombus_api::frames::{Publish, write_publish};
use prombus_api::options::{AlsoPublish as WireAlsoPublish, PublishOptions as WireOptions};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::RefCell;

/// A frame without its closing brace, for the number that it gets later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoded<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) safety: Safety,
}

/// What may happen to a publish whose answer did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safety {
    /// It has no id: sending it again might store it twice.
    Once,
    /// It has its publisher's id.
    OwnId,
    /// It has an id that was made here. That the server knows it already only means that it was sent before.
    GeneratedId,
}

/// Buffers that a thread uses for one publish after the other.
#[derive(Default)]
struct Scratch {
    frame: Vec<u8>,
    payload: Vec<u8>,
    id: String,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// A buffer that grew beyond this for one large event is not kept.
const MAX_SCRATCH_BYTES: usize = 256 << 10;

/// Spells a publish of JSON text and hands it to `then`.
pub(crate) fn encode<T>(
    core: &Core,
    topic: &str,
    payload: &str,
    options: &PublishOptions<'_>,
    then: impl FnOnce(Encoded<'_>) -> T,
) -> Result<T, PublishError> {
    // SocketError JSON would break the frames beside it too. Between two newlines nothing can hide.
    let payload: &RawValue = serde_json::from_str(payload).map_err(bad_json)?;
    let mut scratch = SCRATCH.take();
    let safety = scratch.spell(core, topic, payload.get(), options);
    let text = &scratch.frame;
    let done = then(Encoded { text, safety });
    scratch.give_back();
    Ok(done)
}

/// Spells a publish of a value and hands it to `then`.
pub(crate) fn encode_value<V: Serialize + ?Sized, T>(
    core: &Core,
    topic: &str,
    value: &V,
    options: &PublishOptions<'_>,
    then: impl FnOnce(Encoded<'_>) -> T,
) -> Result<T, PublishError> {
    let mut scratch = SCRATCH.take();
    let mut payload = std::mem::take(&mut scratch.payload);
    payload.clear();
    let written = serde_json::to_writer(&mut payload, value);
    let done = written.map_err(bad_json).and_then(|()| {
        let text = std::str::from_utf8(&payload).map_err(|error| {
            let why = error.to_string();
            PublishError::BadJson(BadValue { why })
        })?;
        let safety = scratch.spell(core, topic, text, options);
        let text = &scratch.frame;
        Ok(then(Encoded { text, safety }))
    });
    scratch.payload = payload;
    scratch.give_back();
    done
}

impl Scratch {
    fn spell(
        &mut self,
        core: &Core,
        topic: &str,
        payload: &str,
        options: &PublishOptions<'_>,
    ) -> Safety {
        let (id, safety) = match options.id {
            Some(id) => (Some(id), Safety::OwnId),
            None if core.options.idempotent => {
                core.ids.make(&mut self.id);
                (Some(self.id.as_str()), Safety::GeneratedId)
            }
            None => (None, Safety::Once),
        };
        let PublishExtras {
            schedule,
            also_publish,
        } = options.extras;
        let publish = Publish {
            topic: Cow::Borrowed(topic),
            payload,
            options: WireOptions {
                id: id.map(Cow::Borrowed),
                ts: options.ts,
                key: options.key.map(Cow::Borrowed),
                headers: options.headers.to_vec(),
                tags: options.tags.to_vec(),
                caused_by: options.caused_by.to_vec(),
                sid: options.sid.map(Cow::Borrowed),
                expect_seq: options.expect_seq,
                expect_key_seq: options.expect_key_seq,
                deliver_at: schedule.deliver_at,
                delay_ms: schedule.delay_ms,
                every: schedule.every.map(Cow::Borrowed),
                catch_up: schedule.catch_up,
                also_publish: also_publish
                    .iter()
                    .map(|also| WireAlsoPublish {
                        topic: Cow::Borrowed(also.topic),
                        payload: Cow::Borrowed(also.payload),
                    })
                    .collect(),
            },
        };
        self.frame.clear();
        write_publish(&mut self.frame, &publish, None);
        let brace = self.frame.pop();
        debug_assert_eq!(brace, Some(b'}'), "a frame is an object");
        safety
    }

    fn give_back(mut self) {
        for buffer in [&mut self.frame, &mut self.payload] {
            if buffer.capacity() > MAX_SCRATCH_BYTES {
                *buffer = Vec::new();
            }
        }
        SCRATCH.set(self);
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "it is passed as a function to map_err"
)]
fn bad_json(error: serde_json::Error) -> PublishError {
    let why = error.to_string();
    PublishError::BadJson(BadValue { why })
}
