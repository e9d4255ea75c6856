//! Steps that are counted, and the one at which the process dies.

use crate::{STEP, number};
use prombus::ReadLimit;
use prombus_connect::outbox::OutboxRow as Row;
use prombus_sqlite::error::SourceError;
use prombus_sqlite::outbox::{Publish, PublishFailure, SentAt};
use prombus_sqlite::rusqlite::Connection;
use prombus_sqlite::{BusSource, Source, SourcePage};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many instructions of SQLite's machine make a step.
const INSTRUCTIONS: i32 = 29;

/// One step further. The process ends here if this is the one.
pub(crate) fn step() {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    static LAST: OnceLock<u64> = OnceLock::new();
    let last = *LAST.get_or_init(|| number(STEP).expect("a step"));
    if TAKEN.fetch_add(1, Ordering::SeqCst) + 1 == last {
        let pid = std::process::id().to_string();
        // It does not come back from this.
        let sent = Command::new("kill").args(["-s", "KILL", &pid]).status();
        panic!("still alive: {sent:?}");
    }
}

/// A database whose statements and commits are steps.
pub(crate) fn database(folder: &Path) -> Connection {
    let mut connection = prombus_sqlite::open(folder.join("tables.db")).expect("a database");
    let in_statement = || {
        step();
        false
    };
    connection
        .progress_handler(INSTRUCTIONS, Some(in_statement))
        .expect("a handler");
    connection
        .commit_hook(Some(|| {
            step();
            false
        }))
        .expect("a hook");
    connection
}

/// A source whose reads are steps.
pub(crate) struct Stepping<S>(pub(crate) S);

impl Source for Stepping<BusSource> {
    fn topic(&self) -> &str {
        self.0.topic()
    }

    async fn read(&mut self, from_seq: u64, limit: ReadLimit) -> Result<SourcePage, SourceError> {
        step();
        let page = self.0.read(from_seq, limit).await;
        step();
        page
    }

    async fn moved(&mut self, tail_seq: u64) -> Result<(), SourceError> {
        self.0.moved(tail_seq).await
    }
}

impl<B: Publish> Publish for Stepping<B> {
    async fn publish<P: Sync>(&self, rows: &[Row<P>]) -> Vec<Result<SentAt, PublishFailure>> {
        step();
        let results = self.0.publish(rows).await;
        step();
        results
    }
}
