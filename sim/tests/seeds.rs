//! Runs the seeds from 0 to `PROMBUS_SEEDS`, or only `PROMBUS_SEED`; a failure names its seed, with the end of its trace.
#![cfg(test)]

use prombus_sim::{Kind, run};

/// How many seeds each store is run with, unless the environment says otherwise.
const MEMORY_SEEDS: u64 = 2_000;
const FILE_SEEDS: u64 = 200;
/// How much of a trace a failure shows.
const SHOWN_LINES: usize = 60;

#[test]
fn sim_memory_even() {
    run_seeds(Kind::Memory, MEMORY_SEEDS, 0, 2);
}

#[test]
fn sim_memory_odd() {
    run_seeds(Kind::Memory, MEMORY_SEEDS, 1, 2);
}

#[test]
fn sim_file() {
    run_seeds(Kind::File, FILE_SEEDS, 0, 1);
}

#[test]
fn sim_same_seed_gives_the_same_trace() {
    for kind in [Kind::Memory, Kind::File] {
        for seed in 0..12 {
            let [one, other] = [run(seed, kind), run(seed, kind)];
            assert!(one.trace.lines().count() > 50, "seed {seed} does nothing");
            if one != other {
                let mut lines = one.trace.lines().zip(other.trace.lines());
                let differs = lines.find(|(one, other)| one != other);
                panic!("seed {seed} on {kind:?} differs: {differs:?}");
            }
        }
    }
}

#[allow(
    clippy::print_stdout,
    reason = "the trace of a seed that failed is what one looks at"
)]
fn run_seeds(kind: Kind, most: u64, part: u64, of: u64) {
    let seeds = match number("PROMBUS_SEED") {
        Some(only) => only..only + 1,
        None => 0..number("PROMBUS_SEEDS").unwrap_or(most),
    };
    let mut failed = Vec::new();
    for seed in seeds.filter(|seed| seed % of == part) {
        let outcome = run(seed, kind);
        if !outcome.violations.is_empty() {
            let lines: Vec<&str> = outcome.trace.lines().collect();
            // A seed that was asked for by its number is shown in full.
            let shown = match number("PROMBUS_SEED") {
                Some(_) => 0,
                None => lines.len().saturating_sub(SHOWN_LINES),
            };
            if failed.is_empty() {
                println!("seed {seed}:\n{}", lines[shown..].join("\n"));
            }
            failed.push(format!("seed {seed}: {}", outcome.violations[0]));
        }
    }
    assert!(
        failed.is_empty(),
        "{} seeds failed on {kind:?}, `make sim SEED=n` runs one again:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a seed is a number"))
}
