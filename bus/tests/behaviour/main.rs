//! What the bus does, seen from outside, on the memory store and in virtual time. One file per behaviour.
#![cfg(test)]

mod atomic;
mod close;
mod cursors;
mod dead_letters;
mod dormancy;
mod ephemeral;
mod errors;
mod exactly_once;
mod expected;
mod explain;
mod fan_in;
mod filters;
mod following;
mod groups;
mod handlers;
mod in_doubt;
mod leases;
mod memory;
mod ordering;
mod pause;
mod projector_crash;
mod projectors;
mod promises;
mod publish;
mod restart;
mod schedules;
mod schemas;
mod stress;
mod support;
mod topics;
mod typed;
mod undo;
mod unwritten;
mod upcasts;
