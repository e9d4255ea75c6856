//! Frames written and read back, both ways; messages that are not as they should be; what must not be copied.

mod messages;
mod refusals;
mod round_trips;
mod strategies;
