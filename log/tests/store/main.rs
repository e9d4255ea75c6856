//! The log as a store: it keeps the contract, and goes on when its disk fails and comes back.
#![cfg(test)]
#![cfg(feature = "file")]

mod conformance;
mod reopening;
