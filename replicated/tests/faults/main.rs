//! What a replicated store does when its shared log misbehaves.
#![cfg(test)]

mod away;
mod clocks;
mod edited;
mod fleet;
mod nodes;
mod parts;
mod snapshots;
mod support;
mod window;
