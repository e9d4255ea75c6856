//! Frames written and read back, both ways; messages that are not as they should be; what must not be copied.

mod errors;
mod messages;
mod round_trips;
mod strategies;
