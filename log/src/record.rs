//! Records: the frames a segment consists of, and the event record, whose body is the event's JSON exactly as
//! clients see it. Byte by byte in docs/format.md.

mod event;
mod frame;
mod spelling;
mod state;

pub use event::{EventBlock, StoredEvent};
pub use frame::MAX_RECORD_BYTES;
pub(crate) use frame::{FRAME_BYTES, Frame, FrameError, Kind, LAST_OF_BATCH, read_frame};
pub(crate) use spelling::{EventPlace, EventSpelling};
pub(crate) use state::{StateRecord, TopicRecord};
