//! A populated log, harmed at seeded places in every way that disks and operators know: nothing panics, nothing is
//! altered, no loss goes unnamed, a check agrees with a start, and no position is given twice.

mod harm;
mod judge;
mod populated;

use crate::seeds;
use harm::Harm;
use populated::Populated;

/// Seeds that are run where the environment does not say.
const SEEDS: u64 = 300;

#[test]
fn harm_to_a_closed_log_is_named() {
    let (log, foreign) = (Populated::closed(7), Populated::closed(8));
    seeds::run(SEEDS, |seed| {
        judge::judge(&log, &Harm::choose(&log, &foreign, seed));
    });
}

#[test]
fn harm_to_a_killed_log_is_named() {
    let (log, foreign) = (Populated::killed(7), Populated::closed(8));
    seeds::run(SEEDS, |seed| {
        judge::judge(&log, &Harm::choose(&log, &foreign, seed));
    });
}

/// Each of these went unnoticed or lost everything once.
#[test]
fn files_that_are_swapped_copied_or_removed_are_named() {
    let foreign = Populated::closed(8);
    for log in [Populated::closed(7), Populated::killed(7)] {
        let segments = log.names(".seg");
        let (first, last) = (&segments[0], &segments[segments.len() - 1]);
        for middle in &segments {
            judge::judge(&log, &Harm::swap(&log, first, middle));
            judge::judge(&log, &Harm::swap(&log, last, middle));
            judge::judge(&log, &Harm::copy(&log, first, middle));
            judge::judge(&log, &Harm::copy(&log, middle, last));
            let index = middle.replace(".seg", ".idx");
            judge::judge(&log, &Harm::remove(&log, &[middle]));
            judge::judge(&log, &Harm::remove(&log, &[middle, &index]));
            judge::judge(&log, &Harm::remove(&log, &[middle, &index, "CLOSED"]));
            judge::judge(&log, &Harm::remove(&log, &[middle, &index, "SEGMENTS"]));
            judge::judge(&log, &Harm::foreign(&log, &foreign, first, middle));
        }
        for name in ["CLOSED", "SEGMENTS"] {
            judge::judge(&log, &Harm::remove(&log, &[name]));
            judge::judge(&log, &Harm::foreign(&log, &foreign, name, name));
        }
    }
}
