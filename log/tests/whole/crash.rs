//! Random scripts with crashes at any operation, held against a model.
//!
//! The log is one active of commits, so after a crash it holds exactly the first so many of the units that were
//! submitted, and never fewer than were acknowledged. A unit is an atomic batch, the changes of any other batch, or
//! one event.

mod check;
mod model;
mod script;

use crate::seeds;
use script::Run;

const PARTS: u64 = 4;

#[test]
fn crash_seeds_of_part_0() {
    seeds::run_part(0, PARTS, |seed| Run::new(seed).play());
}

#[test]
fn crash_seeds_of_part_1() {
    seeds::run_part(1, PARTS, |seed| Run::new(seed).play());
}

#[test]
fn crash_seeds_of_part_2() {
    seeds::run_part(2, PARTS, |seed| Run::new(seed).play());
}

#[test]
fn crash_seeds_of_part_3() {
    seeds::run_part(3, PARTS, |seed| Run::new(seed).play());
}
