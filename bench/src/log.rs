//! The table of the inner rooms: the log beside plain loops, the bus on both stores, reading, and whether costs stay
//! flat as things grow.

mod append;
mod behind;
mod deliver;
mod flat;
mod group_commit;
mod groups;
mod ids;
mod latency;
mod open;
mod partitions;
mod payloads;
mod publish;
mod read;
mod schemas;
mod stored;
mod topics;
mod wide;

use crate::table::Row;

/// In the order of the table. `stored` adds to the large log, so it follows the others that use it.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "append",
        run: append::run,
    },
    Row {
        name: "group-commit",
        run: group_commit::run,
    },
    Row {
        name: "latency",
        run: latency::run,
    },
    Row {
        name: "publish",
        run: publish::run,
    },
    Row {
        name: "schemas",
        run: schemas::run,
    },
    Row {
        name: "deliver",
        run: deliver::run,
    },
    Row {
        name: "read",
        run: read::run,
    },
    Row {
        name: "topics",
        run: topics::run,
    },
    Row {
        name: "groups",
        run: groups::run,
    },
    Row {
        name: "partitions",
        run: partitions::run,
    },
    Row {
        name: "payloads",
        run: payloads::run,
    },
    Row {
        name: "ids",
        run: ids::run,
    },
    Row {
        name: "wide",
        run: wide::run,
    },
    Row {
        name: "open",
        run: open::run,
    },
    Row {
        name: "behind",
        run: behind::run,
    },
    Row {
        name: "stored",
        run: stored::run,
    },
];
