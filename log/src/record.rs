//! Records: the frames a segment consists of. The event record is that of every store; those of topics and keyed
//! records are the log's own. Byte by byte in docs/format.md.

mod frame;
mod state;

pub(crate) use frame::{Frame, Kind, read_frame};
pub(crate) use prombus_store::StoredEvent;
pub(crate) use prombus_store::record::{
    EventEncoder, EventPlace, FRAME_BYTES, FrameError, LAST_OF_BATCH,
};
pub(crate) use state::{StateRecord, TopicRecord};
