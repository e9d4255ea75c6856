//! The record of an event, which every store of this house hands out and most of them keep as it is: a frame with a
//! checksum, a head of fixed offsets, and the event's JSON exactly as clients see it. One layout for all of them, so that
//! no event is converted between the disk and the subscriber. Byte by byte in docs/format.md.

mod encoder;
mod event;
mod frame;

pub use encoder::{EventEncoder, EventPlace};
pub use event::{EventBlock, StoredEvent};
pub use frame::{
    EVENT_KIND, FRAME_BYTES, FrameError, LAST_OF_BATCH, MAX_RECORD_BYTES, RawFrame, finish_frame,
    read_frame, start_frame,
};
