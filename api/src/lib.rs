//! The wire protocol of prombus, shared by gateway, client and command line: WebSocket frames, options, HTTP queries and
//! bodies, error codes, and the OpenAPI document.
//!
//! ```
//! use prombus_api::{Code, openapi};
//!
//! let document = openapi::document();
//! assert!(document["paths"]["/publish/{topic}"]["post"].is_object());
//! assert_eq!(Code::UnknownTopic.http_status(), 404);
//! ```
//!
//! It parses and encodes; names, sizes and payloads are validated by the bus.

// The OpenAPI document lists all routes in one json! literal, which expands by recursion.
#![cfg_attr(test, recursion_limit = "256")]

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
