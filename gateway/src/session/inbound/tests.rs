//! Frames whole, in pieces and wrong.
