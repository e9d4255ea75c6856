//! State: what a topic says of its keys now and what it said before, and reading on from there.

mod follow;

pub use follow::Follow;
