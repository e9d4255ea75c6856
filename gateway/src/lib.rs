//! prombus on the network: who may do what, how fast, and what is counted.

pub mod auth;
pub mod limits;
pub mod metrics;
