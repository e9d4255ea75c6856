//! A server on a port that the system chooses, for one test.

use super::client::Client;
use prombus::{Bus, BusOptions, PublishOptions, Store, SystemClock};
use prombus_gateway::auth::{AuthError, Authenticator, Grant, Policy};
use prombus_gateway::{Gateway, GatewayOptions, Server};
use prombus_store::memory::MemoryStore;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;

pub(crate) struct Running {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) address: SocketAddr,
    pub(crate) serving: JoinHandle<()>,
}

impl Running {
    /// With all defaults, in memory, for everybody.
    pub(crate) async fn start() -> Self {
        Self::with(GatewayOptions::default()).await
    }

    pub(crate) async fn with(options: GatewayOptions) -> Self {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        Self::on(store, BusOptions::default(), Authenticator::off(), options).await
    }

    /// Where tokens are the scopes themselves, with spaces between; `expired` and `wrong` are what they say.
    pub(crate) async fn with_scopes(options: GatewayOptions) -> Self {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        let auth = Authenticator::function(grant);
        Self::on(store, BusOptions::default(), auth, options).await
    }

    pub(crate) async fn on(
        store: Arc<dyn Store>,
        bus_options: BusOptions,
        auth: Authenticator,
        options: GatewayOptions,
    ) -> Self {
        let bus = Bus::open(store, bus_options).expect("good options");
        let gateway = Gateway::new(bus, auth, options).expect("good patterns");
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::bind(gateway.clone(), &[loopback])
            .await
            .expect("a port");
        let address = server.addresses().expect("addresses")[0];
        let serving = tokio::spawn(server.serve());
        Self {
            gateway,
            address,
            serving,
        }
    }

    pub(crate) fn bus(&self) -> &Bus {
        self.gateway.bus()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Publishes `count` events whose payloads are their numbers, from 1.
    pub(crate) async fn fill(&self, topic: &str, count: usize) {
        let mut batch = self.bus().batch();
        for number in 1..=count {
            batch.add(topic, &number.to_string(), &PublishOptions::default());
        }
        for result in self.bus().publish_batch(batch).await {
            result.expect("published");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn grant(token: &str) -> Result<Grant, AuthError> {
    match token {
        "wrong" => return Err(AuthError::WrongToken),
        "expired" => return Err(AuthError::Expired { expired_at_ms: 1 }),
        _ => {}
    }
    let (scopes, lives_ms) = match token.split_once(" lives:") {
        Some((scopes, lives_ms)) => (scopes, lives_ms.parse::<u64>().ok()),
        None => (token, None),
    };
    let policy = Policy::from_scopes(scopes.split(' ')).map_err(AuthError::BadPolicy)?;
    let now_ms = prombus::Clock::now_ms(&SystemClock);
    Ok(Grant {
        policy: Arc::new(policy),
        expires_at_ms: lives_ms.map(|ms| now_ms + ms),
        subject: None,
    })
}
