//! The wire protocol of prombus, shared by gateway, client and command line: WebSocket frames, options, HTTP queries and
//! bodies, error codes, and the OpenAPI document.
//!
//! It parses and encodes; names, sizes and payloads are validated by the bus.

mod code;
mod error;
pub mod frames;
pub mod http;
pub mod openapi;
pub mod options;
mod record;
mod scan;
mod write;

pub use code::Code;
pub use error::{FrameError, ParseError};
pub use record::Record;
pub use scan::nearest;
