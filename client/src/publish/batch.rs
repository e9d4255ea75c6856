//! A batch of events to publish, to one topic or many, in one message where it fits.

use super::encode::{Encoded, Safety};
use super::{BatchFuture, PublishFuture, PublishOptions, encode, encode_value};
use crate::core::Core;
use crate::error::{AckPublishError, PublishError};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// What a frame has before the fields of its event.
const FRAME_OPENING: &[u8] = br#"{"op":"PUBLISH","#;

/// Events to be published in order. An event that is not as it should be gets its error in the answer and does not
/// keep the others from being stored.
pub struct PublishBatch {
    core: Arc<Core>,
    /// The frames, one behind the other.
    text: Vec<u8>,
    /// Where each ends in `text`, or why there is none.
    frames: Vec<Result<(usize, Safety), PublishError>>,
}

impl PublishBatch {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            text: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Adds an event whose payload is JSON text.
    pub fn add(&mut self, topic: &str, payload: &str, options: &PublishOptions<'_>) -> &mut Self {
        let Self { core, text, .. } = self;
        let frame = encode(core, topic, payload, options, |frame| keep(text, frame));
        self.frames.push(frame);
        self
    }

    /// Adds an event whose payload is a value.
    pub fn add_value<T: Serialize + ?Sized>(
        &mut self,
        topic: &str,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> &mut Self {
        let Self { core, text, .. } = self;
        let frame = encode_value(core, topic, value, options, |frame| keep(text, frame));
        self.frames.push(frame);
        self
    }

    /// How many events were added.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether none was added.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The events as a list for an ACK that publishes them, or why they cannot be one.
    pub(crate) fn into_list(self) -> Result<Vec<u8>, AckPublishError> {
        let mut list = Vec::with_capacity(self.text.len() + 2 * self.frames.len() + 2);
        let mut from = 0;
        list.push(b'[');
        for (at, frame) in self.frames.into_iter().enumerate() {
            let (end, _) = frame.map_err(|error| AckPublishError::NotPublished { at, error })?;
            if at > 0 {
                list.push(b',');
            }
            let text = &self.text[from..end];
            list.push(b'{');
            list.extend_from_slice(text.strip_prefix(FRAME_OPENING).unwrap_or(text));
            list.push(b'}');
            from = end;
        }
        list.push(b']');
        Ok(list)
    }

    /// Sends the events.
    pub(crate) fn publish(self) -> BatchFuture {
        let mut from = 0;
        let answers = self.frames.into_iter().map(|frame| match frame {
            Ok((end, safety)) => {
                let text = &self.text[from..end];
                from = end;
                PublishFuture::send(&self.core, Encoded { text, safety })
            }
            Err(error) => PublishFuture::refused(&self.core, error),
        });
        BatchFuture::new(answers.collect())
    }
}

fn keep(text: &mut Vec<u8>, frame: Encoded<'_>) -> (usize, Safety) {
    text.extend_from_slice(frame.text);
    (text.len(), frame.safety)
}

impl fmt::Debug for PublishBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishBatch")
            .field("count", &self.frames.len())
            .finish_non_exhaustive()
    }
}
