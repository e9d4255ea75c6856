//! The client against a small server that breaks the connection at every point of the protocol, garbles it, delays it
//! or refuses things. What the server keeps is the model that the client's promises are held against.
#![cfg(test)]

mod ack_publish;
mod auth;
mod broker;
mod consuming;
mod publishing;
mod seeds;

use prombus_client::{Client, ClientOptions, Reconnect};
use std::future::Future;
use std::time::Duration;

/// Far more than anything here needs.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits with a limit.
async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future)
        .await
        .expect("it takes for ever")
}

/// Options for tests: quick to come back.
fn options() -> ClientOptions {
    ClientOptions {
        reconnect: Reconnect {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(5),
            max_attempts: None,
        },
        wait_for_server: true,
        ..ClientOptions::default()
    }
}

async fn connect(broker: &broker::Broker, options: ClientOptions) -> Client {
    within(Client::connect(&broker.url(), options))
        .await
        .expect("a connection")
}
