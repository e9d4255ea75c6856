//! Frames as they go out.
