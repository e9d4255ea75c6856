//! The log as a whole, from outside: on a disk that lies, on damaged files, under SIGKILL, in folders of all kinds,
//! and with many threads.
#![cfg(test)]

mod copy;
mod corruption;
mod crash;
mod damage;
mod descriptors;
mod faults;
mod finding;
mod fixture;
mod folders;
mod ids;
mod kill;
mod limits;
mod opening;
mod plan;
mod random_ids;
mod reading;
mod reopening;
mod retention;
mod seeds;
mod state_runs;
mod threads;
