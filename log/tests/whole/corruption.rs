//! A populated log, harmed at seeded places in every way that disks and operators know: nothing panics, nothing is
//! altered, no loss goes unnamed, a check agrees with a start, and no position is given twice.

mod check;
mod corrupt;
mod populated;

use crate::seeds;
use corrupt::Harm;
use populated::Populated;

/// Seeds that are run where the environment does not say.
const SEEDS: u64 = 300;

#[test]
fn harm_to_a_closed_log_is_named() {
    let (log, foreign) = (Populated::closed(7), Populated::closed(8));
    seeds::run(SEEDS, |seed| {
        check::judge(&log, &Harm::choose(&log, &foreign, seed));
    });
}

#[test]
fn harm_to_a_killed_log_is_named() {
    let (log, foreign) = (Populated::killed(7), Populated::closed(8));
    seeds::run(SEEDS, |seed| {
        check::judge(&log, &Harm::choose(&log, &foreign, seed));
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
            check::judge(&log, &Harm::swap(&log, first, middle));
            check::judge(&log, &Harm::swap(&log, last, middle));
            check::judge(&log, &Harm::copy(&log, first, middle));
            check::judge(&log, &Harm::copy(&log, middle, last));
            let index = middle.replace(".seg", ".idx");
            check::judge(&log, &Harm::remove(&log, &[middle]));
            check::judge(&log, &Harm::remove(&log, &[middle, &index]));
            check::judge(&log, &Harm::remove(&log, &[middle, &index, "CLOSED"]));
            check::judge(&log, &Harm::remove(&log, &[middle, &index, "SEGMENTS"]));
            check::judge(&log, &Harm::foreign(&log, &foreign, first, middle));
        }
        for name in ["CLOSED", "SEGMENTS"] {
            check::judge(&log, &Harm::remove(&log, &[name]));
            check::judge(&log, &Harm::foreign(&log, &foreign, name, name));
        }
    }
}
