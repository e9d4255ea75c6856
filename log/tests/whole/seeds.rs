//! Which seeds to run: from 0 to `PROMBUS_SEEDS`, or only `PROMBUS_SEED`. A failure names its seed.

use std::env;

const SEEDS: u64 = 1000;

/// Runs every `of`-th seed, from `part` on, so that several tests share the work.
pub(crate) fn run_part(part: u64, of: u64, run: impl Fn(u64)) {
    run_first(SEEDS, part, of, run);
}

/// Runs all seeds below `most`, or as many as the environment says.
pub(crate) fn run(most: u64, run: impl Fn(u64)) {
    run_first(most, 0, 1, run);
}

fn run_first(most: u64, part: u64, of: u64, run: impl Fn(u64)) {
    let seeds = match number("PROMBUS_SEED") {
        Some(only) => only..only + 1,
        None => 0..number("PROMBUS_SEEDS").unwrap_or(most),
    };
    for seed in seeds.filter(|seed| seed % of == part) {
        let named = Named(seed);
        run(seed);
        drop(named);
    }
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().expect("a seed is a number"))
}

/// Tells the seed of a test that ends in the middle of it.
struct Named(u64);

impl Drop for Named {
    #[allow(
        clippy::print_stderr,
        reason = "whoever reads the failure needs the seed"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed) = self;
            eprintln!("seed {seed} failed; `make crash SEED={seed}` runs it again");
        }
    }
}
