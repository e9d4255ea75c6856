//! The table of several nodes on a shared log: publishing beside one message for each event, consuming beside the file
//! store, a node that starts with nothing, how far copies lag, and how long a group rests when its owner fails.
//! `prombus-bench cluster`. Nodes are in this process, except those that fail; the servers are processes on loopback.

mod cold;
mod consume;
mod lag;
mod mongo;
mod nodes;
mod publish;
mod servers;
mod take_over;

use crate::Outcome;
use crate::table::Row;
use tokio::runtime::Runtime;

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "cluster-publish",
        run: publish::three,
    },
    Row {
        name: "cluster-single",
        run: publish::one,
    },
    Row {
        name: "cluster-consume",
        run: consume::run,
    },
    Row {
        name: "cluster-cold",
        run: cold::run,
    },
    Row {
        name: "cluster-lag",
        run: lag::run,
    },
    Row {
        name: "cluster-take-over",
        run: take_over::run,
    },
    Row {
        name: "cluster-mongo",
        run: mongo::run,
    },
];

/// A runtime with sockets.
fn runtime() -> Outcome<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.enable_all().build()?)
}
