//! The log as a whole, from outside: on a disk that lies, on damaged files, under SIGKILL, in folders of all kinds,
//! and with many threads.
#![cfg(test)]

mod crash;
mod damage;
mod desk;
mod faults;
mod finding;
mod folders;
mod ids;
mod kill;
mod limits;
mod opening;
mod plan;
mod reading;
mod reopening;
mod retention;
mod seeds;
mod threads;
