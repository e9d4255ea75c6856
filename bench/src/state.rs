//! The table of state: one atomic step beside two, tables in SQLite beside a plain loop, rebuilding from a snapshot
//! beside folding the whole log, and reading the state of a key over HTTP. `prombus-bench state`.

mod atomic;
mod changelog;
mod rebuild;
mod snap;

use crate::table::Row;

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "atomic",
        run: atomic::run,
    },
    Row {
        name: "changelog",
        run: changelog::run,
    },
    Row {
        name: "rebuild",
        run: rebuild::run,
    },
    Row {
        name: "snap",
        run: snap::run,
    },
];
