//! State: tables of keys now and at a time, snapshots, and following from them. On the memory store, in virtual time,
//! against a plain fold over everything that was published.
#![cfg(test)]

mod crashes;
mod diff;
mod latest;
mod loading;
mod lossy_store;
mod model;
mod snapshots;
mod time_travel;
