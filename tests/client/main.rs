//! The remote client against the real server, in one process, on both embedded stores: the same behaviour as in
//! process, broken connections in between, and a restart of the server.
#![cfg(test)]

mod ack_publish;
mod admin;
mod connectors;
mod ephemeral;
mod exactly_once;
mod partitions;
mod registry;
mod state;
mod stream;

use prombus::{Bus, BusOptions, SystemClock};
use prombus_client::{
    Client, ClientOptions, Delivery, PublishOptions, Reconnect, StartAt, SubscribeOptions,
};
use prombus_gateway::auth::{Authenticator, Secret};
use prombus_gateway::{Gateway, GatewayOptions, Server};
use prombus_log::FileStore;
use prombus_store::Store;
use prombus_store::memory::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Far more than anything here needs.
const LIMIT: Duration = Duration::from_secs(60);
static PLAIN: LazyLock<PublishOptions<'static>> = LazyLock::new(PublishOptions::default);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future)
        .await
        .expect("it takes for ever")
}

/// A server at work.
struct Running {
    address: SocketAddr,
    gateway: Arc<Gateway>,
    serving: JoinHandle<()>,
}

impl Running {
    async fn start(store: Arc<dyn Store>, auth: Authenticator, address: &str) -> Self {
        Self::start_with(store, auth, address, GatewayOptions::default()).await
    }

    async fn start_with(
        store: Arc<dyn Store>,
        auth: Authenticator,
        address: &str,
        options: GatewayOptions,
    ) -> Self {
        let bus = Bus::open(store, BusOptions::default()).unwrap();
        let gateway = Gateway::new(bus, auth, options).unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let server = Server::bind(gateway.clone(), &[address]).await.unwrap();
        let address = server.addresses().unwrap()[0];
        let serving = tokio::spawn(server.serve());
        Self {
            address,
            gateway,
            serving,
        }
    }

    async fn on_file(path: &Path) -> Self {
        let store = Arc::new(FileStore::open(path).unwrap().0);
        Self::start(store, Authenticator::off(), "127.0.0.1:0").await
    }

    async fn in_memory() -> Self {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        Self::start(store, Authenticator::off(), "127.0.0.1:0").await
    }

    async fn client(&self) -> Client {
        within(Client::connect(
            &format!("ws://{}", self.address),
            options(),
        ))
        .await
        .unwrap()
    }

    async fn stop(self) {
        self.gateway.drain();
        within(self.serving).await.unwrap();
        within(self.gateway.bus().close()).await.unwrap();
    }
}

fn options() -> ClientOptions {
    ClientOptions {
        reconnect: Reconnect {
            base: Duration::from_millis(2),
            cap: Duration::from_millis(20),
            max_attempts: None,
        },
        wait_for_server: true,
        ..ClientOptions::default()
    }
}

fn earliest() -> SubscribeOptions {
    SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    }
}

/// Runs a test on both stores.
async fn on_both<F: Future>(test: impl Fn(Running) -> F) {
    test(Running::in_memory().await).await;
    let folder = tempfile::tempdir().unwrap();
    test(Running::on_file(folder.path()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishing_is_as_in_process() {
    on_both(|server| async move {
        let client = server.client().await;
        let answers: Vec<_> = (0..2_000)
            .map(|number| client.publish("numbers", &number, &PLAIN))
            .collect();
        for (at, answer) in answers.into_iter().enumerate() {
            let published = within(answer).await.unwrap();
            assert_eq!((published.seq, published.duplicate), (at as u64 + 1, false));
        }
        let own = PublishOptions {
            id: Some("own-1"),
            ..*PLAIN
        };
        assert!(
            !within(client.publish("ids", "a", &own))
                .await
                .unwrap()
                .duplicate
        );
        assert!(
            within(client.publish("ids", "a", &own))
                .await
                .unwrap()
                .duplicate
        );
        for (code, topic, payload, options) in [
            ("id_conflict", "ids", "\"b\"", &own),
            ("bad_topic", "no topic", "1", &PLAIN),
            ("bad_json", "t", "{", &PLAIN),
        ] {
            let error = within(client.publish_text(topic, payload, options))
                .await
                .unwrap_err();
            assert_eq!(error.code(), code);
        }
        let long = "x".repeat(1 << 20);
        let error = within(client.publish("t", &long, &PLAIN))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "too_large");
        let mut batch = client.batch();
        batch
            .add("a", "1", &PLAIN)
            .add("no topic", "2", &PLAIN)
            .add("b", "3", &PLAIN);
        let results = within(client.publish_batch(batch)).await;
        assert_eq!(results[1].as_ref().unwrap_err().code(), "bad_topic");
        assert!(results[0].is_ok() && results[2].is_ok());
        within(client.close()).await.unwrap();
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consuming_is_as_in_process() {
    on_both(|server| async move {
        let client = server.client().await;
        for number in 0..500 {
            drop(client.publish("t", &number, &PLAIN));
        }
        let subscription = within(client.subscribe("t", "g", earliest()))
            .await
            .unwrap();
        let error = within(client.subscribe("t", "g", earliest()))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "already_subscribed");
        let first = within(subscription.next()).await.unwrap();
        assert_eq!((first.event.seq(), first.context.attempt), (1, 1));
        first.nack_after("not now", 1);
        let mut seen = BTreeMap::new();
        while seen.len() < 500 {
            for delivery in within(subscription.next_batch(100)).await {
                let number: u32 = delivery.value().unwrap();
                seen.insert(number, delivery.context.attempt);
                if number.is_multiple_of(2) {
                    delivery.ack();
                } else {
                    within(delivery.ack_confirmed()).await.unwrap();
                }
            }
        }
        assert_eq!(seen[&0], 2);
        assert!(seen.values().skip(1).all(|&attempt| attempt == 1));
        within(subscription.unsubscribe()).await;
        let group = within(server.gateway.bus().group("t", "g")).await.unwrap();
        assert_eq!((group.cursor, group.lag), (500, 0));
        // The group goes on where it was.
        within(client.publish("t", &500, &PLAIN)).await.unwrap();
        let again = within(client.subscribe("t", "g", earliest()))
            .await
            .unwrap();
        let next = within(again.next()).await.unwrap();
        assert_eq!(next.value::<u32>().unwrap(), 500);
        within(next.extend_confirmed(2_000)).await.unwrap();
        next.ack();
        within(client.close()).await.unwrap();
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patterns_handlers_and_ephemeral_groups_work() {
    on_both(|server| async move {
        let client = server.client().await;
        let handled = Arc::new(AtomicUsize::new(0));
        let counter = handled.clone();
        let handler = move |delivery: Delivery| {
            let counter = counter.clone();
            async move {
                assert!(delivery.event.topic().starts_with("room."));
                if delivery.context.attempt == 1 && delivery.event.seq() == 1 {
                    return Err("the first one fails");
                }
                counter.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        };
        let options = SubscribeOptions {
            concurrency: 4,
            ..earliest()
        };
        let consumer = within(client.subscribe_with("room.*", "g", options, handler))
            .await
            .unwrap();
        let ephemeral = within(client.subscribe_ephemeral("room.a", earliest()))
            .await
            .unwrap();
        for number in 0..20_u32 {
            let topic = if number.is_multiple_of(2) {
                "room.a"
            } else {
                "room.b"
            };
            within(client.publish(topic, &number, &PLAIN))
                .await
                .unwrap();
        }
        for _ in 0..10 {
            within(ephemeral.next()).await.unwrap().ack();
        }
        within(async {
            while handled.load(Ordering::SeqCst) < 20 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        within(consumer.stop()).await;
        for topic in ["room.a", "room.b"] {
            let group = within(server.gateway.bus().group(topic, "g"))
                .await
                .unwrap();
            assert_eq!(group.lag, 0);
        }
        within(client.close()).await.unwrap();
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_asked_for() {
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let auth = Authenticator::token(&Secret::new("open-sesame-open-sesame")).unwrap();
    let server = Running::start(store, auth, "127.0.0.1:0").await;
    let url = format!("http://{}", server.address);
    for (token, expected) in [
        (None, "unauthorized"),
        (Some("wrong"), "bad_token"),
        (Some("open-sesame-open-sesame"), ""),
    ] {
        let mut options = options();
        options.token = token.map_or_else(Default::default, Into::into);
        match within(Client::connect(&url, options)).await {
            Ok(client) => {
                assert_eq!(expected, "");
                within(client.publish("t", "in", &PLAIN)).await.unwrap();
            }
            Err(error) => assert_eq!(error.code(), expected, "{error}"),
        }
    }
}

/// Passes bytes on, and cuts each connection after as many as the seed says.
async fn cutting_proxy(server: SocketAddr, seed: u64, cuts: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut made = 0;
        while let Ok((client, _)) = listener.accept().await {
            made += 1;
            let limit = if made <= cuts {
                random.usize(100..20_000)
            } else {
                usize::MAX
            };
            let server = TcpStream::connect(server).await.unwrap();
            tokio::spawn(pass_on(client, server, limit));
        }
    });
    address
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, limit: usize) {
    let (mut up, mut down) = ([0; 4096], [0; 4096]);
    let mut passed = 0;
    while passed < limit {
        tokio::select! {
            read = client.read(&mut up) => match read {
                Ok(count) if count > 0 => {
                    passed += count;
                    if server.write_all(&up[..count]).await.is_err() { return; }
                }
                _ => return,
            },
            read = server.read(&mut down) => match read {
                Ok(count) if count > 0 => {
                    passed += count;
                    if client.write_all(&down[..count]).await.is_err() { return; }
                }
                _ => return,
            },
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_lose_and_double_nothing() {
    const EVENTS: usize = 300;
    for seed in 0..20 {
        let server = Running::in_memory().await;
        let proxy = cutting_proxy(server.address, seed, 8).await;
        let client = within(Client::connect(&format!("ws://{proxy}"), options()))
            .await
            .unwrap();
        let narrow = SubscribeOptions {
            max_in_flight: 20,
            ..earliest()
        };
        let subscription = within(client.subscribe("t", "g", narrow)).await.unwrap();
        let publishing = client.clone();
        let publishing = tokio::spawn(async move {
            let answers: Vec<_> = (0..EVENTS)
                .map(|number| publishing.publish("t", &number, &PLAIN))
                .collect();
            for (at, answer) in answers.into_iter().enumerate() {
                let published = within(answer).await.unwrap();
                assert_eq!(published.seq, at as u64 + 1, "seed {seed}");
                assert!(!published.duplicate, "seed {seed}");
            }
        });
        let mut acknowledged = BTreeSet::new();
        while acknowledged.len() < EVENTS {
            let delivery = within(subscription.next()).await.unwrap();
            let number: usize = delivery.value().unwrap();
            assert!(
                acknowledged.insert(number),
                "seed {seed}: {number} came again"
            );
            delivery.ack();
        }
        within(publishing).await.unwrap();
        within(client.close()).await.unwrap();
        let bus = server.gateway.bus();
        assert_eq!(
            bus.topic("t").unwrap().tail_seq,
            EVENTS as u64,
            "seed {seed}"
        );
        let group = within(bus.group("t", "g")).await.unwrap();
        assert_eq!((group.cursor, group.lag), (EVENTS as u64, 0), "seed {seed}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_server_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::on_file(folder.path()).await;
    let address = server.address;
    let client = server.client().await;
    let subscription = within(client.subscribe("t", "g", earliest()))
        .await
        .unwrap();
    for number in 0..100 {
        within(client.publish("t", &number, &PLAIN)).await.unwrap();
    }
    let mut seen = BTreeSet::new();
    for _ in 0..50 {
        let delivery = within(subscription.next()).await.unwrap();
        seen.insert(delivery.value::<u32>().unwrap());
        within(delivery.ack_confirmed()).await.unwrap();
    }
    server.stop().await;
    // Published while nobody is there.
    let waiting: Vec<_> = (100..200)
        .map(|number| client.publish("t", &number, &PLAIN))
        .collect();
    let store = Arc::new(FileStore::open(folder.path()).unwrap().0);
    let server = Running::start(store, Authenticator::off(), &address.to_string()).await;
    for answer in waiting {
        within(answer).await.unwrap();
    }
    while seen.len() < 200 {
        let delivery = within(subscription.next()).await.unwrap();
        let number = delivery.value::<u32>().unwrap();
        assert!(seen.insert(number), "{number} came again");
        delivery.ack();
    }
    within(client.close()).await.unwrap();
    let group = within(server.gateway.bus().group("t", "g")).await.unwrap();
    assert_eq!((group.cursor, group.lag), (200, 0));
    server.stop().await;
}
