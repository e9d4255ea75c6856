//! What goes over the wire of prombus, written once for gateway, client and command line: WebSocket frames, options,
//! HTTP queries and bodies, error codes, and the OpenAPI document.
//!
//! It knows texts and their meaning, not the bus: names, sizes and payloads are checked by whoever acts on them.

mod code;
pub mod frames;
pub mod http;
pub mod openapi;
pub mod options;
mod record;
mod refusal;
mod scan;
mod write;

pub use code::Code;
pub use record::Record;
pub use refusal::{FrameError, Refusal};
