//! The server under load, as a process of its own: what idle connections cost, whether busy ones get on equally, how
//! fast an export is, and how long an event takes. `prombus-bench server`.

mod export;
mod fair;
mod idle;
mod latency;

use crate::Outcome;
use crate::peers::http;
use crate::peers::process::Process;
use crate::peers::programs::find_prombus;
use crate::table::Row;
use prombus_client::{Client, ClientOptions};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tokio::runtime::Runtime;

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "idle",
        run: idle::run,
    },
    Row {
        name: "fair",
        run: fair::run,
    },
    Row {
        name: "export",
        run: export::run,
    },
    Row {
        name: "latency",
        run: latency::run,
    },
];

const READY: &str = "prombus ready on http://";

/// A server of one row.
struct Served {
    process: Process,
    address: SocketAddr,
}

impl Served {
    /// Starts a server on a folder of its own.
    fn start(folder: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        let mut command = Command::new(find_prombus()?);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.current_dir(folder);
        let (process, line) = Process::start_and_read_line(&mut command)?;
        let address = line.strip_prefix(READY);
        let address = address.and_then(|rest| rest.split_whitespace().next());
        let address = address.ok_or_else(|| format!("prombus says: {line}"))?;
        Ok(Self {
            process,
            address: address.parse()?,
        })
    }

    /// Makes a topic that is answered after the write.
    async fn make_topic(&self, topic: &str) -> Outcome<()> {
        let config = r#"{"durability":"os"}"#;
        http::ask(self.address, &format!("PUT /topics/{topic}"), config).await?;
        Ok(())
    }

    async fn connect(&self) -> Outcome<Client> {
        let url = format!("ws://{}", self.address);
        Ok(Client::connect(&url, ClientOptions::default()).await?)
    }
}

fn runtime() -> Outcome<Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    Ok(runtime)
}
