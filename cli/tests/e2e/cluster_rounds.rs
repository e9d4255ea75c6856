//! Three NATS servers, three nodes, publishers and consumers on all of them, over HTTP and over WebSockets, one group, and rounds
//! of faults from a seed: nodes that are killed, stopped for a while or ended, NATS servers that are killed or stopped, and
//! connections that are cut, stalled or half-open for a while: of a node to NATS, of a NATS server to the nodes, and of a node
//! to the others. Nothing that was acknowledged is lost, no event is in two hands,
//! and all is settled in the end. `PROMBUS_CLUSTER_ROUNDS` says how many rounds, `PROMBUS_CLUSTER_SEED` which.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "other processes are timed, and what it took is printed"
)]

use crate::cutting_proxy::{CuttingProxy, Way};
use crate::nats_servers::Servers;
use crate::ports::free_ports;
use crate::server::{Server, prombus};
use prombus_client::{Client, ClientOptions, StartAt, SubscribeOptions};
use prombus_store::conformance::Random;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const NODES: usize = 3;
/// How long leases are.
const LEASE: Duration = Duration::from_secs(6);
/// How long a node or a NATS server is stopped; longer than an ownership lasts.
const STOPPED: Duration = Duration::from_secs(5);
/// How long nothing passes through proxies, at least; up to twice that.
const CUT_MS: u64 = 2_500;
/// So many that no event dies of it when faults end some of its deliveries and a member gives it back as well.
const MAX_ATTEMPTS: &str = "20";
/// How many kinds of faults there are.
const KINDS: u64 = 7;
/// How long everything may take to come to rest in the end.
const REST: Duration = Duration::from_secs(120);

/// What the threads share.
struct Lab {
    urls: Vec<String>,
    /// What the nodes announce to each other: the URLs of the proxies before them.
    advertised: Vec<String>,
    is_over: AtomicBool,
    is_published: AtomicBool,
    acknowledged: Mutex<BTreeSet<String>>,
    settled: Mutex<BTreeSet<String>>,
    held: Mutex<Vec<Held>>,
    /// What came to a member over a WebSocket.
    seen: Mutex<BTreeSet<String>>,
    by_socket: AtomicU64,
    /// From when to when each node was going down: its members' leases went with it at some moment in between.
    lost: Mutex<Vec<(usize, Instant, Instant)>>,
    began: Instant,
    /// When a delivery last came, by node.
    latest: Vec<Mutex<Option<Instant>>>,
    published: AtomicU64,
}

/// An event in a member's hands, for certain, from a moment to another.
#[derive(Clone)]
struct Held {
    id: String,
    node: usize,
    from: Instant,
    until: Instant,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config
        .timeout_global(Some(Duration::from_secs(4)))
        .build()
        .into()
}

/// The answer to a POST, where there is one.
fn post(agent: &ureq::Agent, url: &str, body: &str) -> Option<(u16, Value)> {
    let mut response = agent.post(url).send(body).ok()?;
    let text = response.body_mut().read_to_string().ok()?;
    Some((
        response.status().as_u16(),
        serde_json::from_str(&text).ok()?,
    ))
}

impl Lab {
    fn went_down(&self, node: usize, since: Instant) {
        let mut lost = self.lost.lock().expect("a lock");
        lost.push((node, since, Instant::now()));
    }
}

/// Publishes each id until a node has acknowledged it.
fn publish(lab: &Lab, publisher: usize, mut random: Random) {
    let agent = agent();
    let mut next = 0;
    while !lab.is_over.load(Ordering::Relaxed) {
        let id = format!("{publisher}-{next}");
        let node = random.below(NODES as u64) as usize;
        let url = format!("{}/publish/orders?id={id}", lab.urls[node]);
        if post(&agent, &url, "1").is_some_and(|(status, _)| status == 200) {
            lab.acknowledged.lock().expect("a lock").insert(id);
            lab.published.fetch_add(1, Ordering::Relaxed);
            next += 1;
        }
        std::thread::sleep(Duration::from_millis(10 + random.below(30)));
    }
}

/// Pulls on one node, works for a while on what comes, and acknowledges most of it.
fn consume(lab: &Lab, node: usize, mut random: Random) {
    let agent = agent();
    let url = &lab.urls[node];
    let pull = json!({
        "topic": "orders", "group": "g", "max": 4, "from": "earliest", "wait_ms": 300,
        "ackTimeoutMs": LEASE.as_millis() as u64,
    });
    let pull = pull.to_string();
    let mut asked = Instant::now();
    while !lab.is_published.load(Ordering::Relaxed) {
        let before = std::mem::replace(&mut asked, Instant::now());
        let pulled = post(&agent, &format!("{url}/pull"), &pull);
        let received = Instant::now();
        let Some((200, pulled)) = pulled else {
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let events = pulled["events"].as_array().cloned().unwrap_or_default();
        if !events.is_empty() {
            *lab.latest[node].lock().expect("a lock") = Some(received);
        }
        for event in events {
            let id = event["event"]["id"].as_str().expect("an id").to_owned();
            std::thread::sleep(Duration::from_millis(random.below(40)));
            // The lease was given after the pull before was asked for: what came too late for that one is in this one.
            let mut until = before + LEASE;
            let is_acknowledged = random.below(40) > 0 && {
                until = until.min(Instant::now());
                let ack = json!({"topic": "orders", "group": "g", "id": id}).to_string();
                let answer = post(&agent, &format!("{url}/ack"), &ack);
                answer.is_some_and(|(status, _)| status == 200)
            };
            if is_acknowledged {
                lab.settled.lock().expect("a lock").insert(id.clone());
            }
            lab.held.lock().expect("a lock").push(Held {
                id,
                node,
                from: received,
                until,
            });
        }
    }
}

/// The same over a WebSocket. How long before it arrived a delivery was leased is not known, so an event counts as in its
/// hands only up to an acknowledgement that is confirmed: then its lease was there all the time.
async fn consume_by_socket(lab: &Lab, node: usize, mut random: Random) {
    let url = lab.urls[node].replace("http://", "ws://");
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        max_in_flight: 4,
        ack_timeout_ms: Some(LEASE.as_millis() as u64),
        ..SubscribeOptions::default()
    };
    while !lab.is_published.load(Ordering::Relaxed) {
        let Ok(client) = Client::connect(&url, ClientOptions::default()).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(subscription) = client.subscribe("orders", "g", options.clone()).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while !lab.is_published.load(Ordering::Relaxed) {
            let next = tokio::time::timeout(Duration::from_millis(300), subscription.next()).await;
            let delivery = match next {
                Err(_) => continue,
                Ok(None) => break,
                Ok(Some(delivery)) => delivery,
            };
            let (from, id) = (Instant::now(), delivery.event.id().to_owned());
            lab.seen.lock().expect("a lock").insert(id.clone());
            tokio::time::sleep(Duration::from_millis(random.below(40))).await;
            if random.below(40) == 0 {
                delivery.nack("another time");
                continue;
            }
            let until = Instant::now();
            if delivery.ack_confirmed().await.is_ok() {
                lab.settled.lock().expect("a lock").insert(id.clone());
                lab.by_socket.fetch_add(1, Ordering::Relaxed);
                lab.held.lock().expect("a lock").push(Held {
                    id,
                    node,
                    from,
                    until,
                });
            }
        }
    }
}

fn start(proxies: &Proxies, folder: &Arc<TempDir>, address: &str) -> Server {
    let hosts: Vec<String> = proxies
        .nats
        .iter()
        .map(|proxy| format!("127.0.0.1:{}", proxy.port))
        .collect();
    let store = format!("nats://{}/orders?replicas=3&copy=copy", hosts.join(","));
    let advertised = proxies.advertised();
    let arguments = [
        "serve",
        "--listen",
        address,
        "--advertise",
        &advertised,
        "--store",
        &store,
    ];
    Server::ready(prombus(folder.path(), &arguments), folder.clone())
}

/// The node that serves the group, as one of them says.
fn owner(lab: &Lab, asked: usize) -> Option<usize> {
    let url = format!("{}/explain?topic=orders&group=g", lab.urls[asked]);
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let config = config.timeout_global(Some(Duration::from_millis(500)));
    let agent: ureq::Agent = config.build().into();
    let mut response = agent.get(url).call().ok()?;
    let text = response.body_mut().read_to_string().ok()?;
    let explained: Value = serde_json::from_str(&text).ok()?;
    let node = explained["node"].as_str()?;
    lab.advertised.iter().position(|url| url == node)
}

/// Waits until another node serves the group; how long that took.
fn take_over(lab: &Lab, from: usize, since: Instant) -> Duration {
    let asked = (from + 1) % NODES;
    while since.elapsed() < REST {
        if owner(lab, asked).is_some_and(|owner| owner != from) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    since.elapsed()
}

/// What is between a node and the rest.
struct Proxies {
    /// From the node to each NATS server.
    nats: Vec<CuttingProxy>,
    /// From the other nodes to this one.
    link: CuttingProxy,
}

impl Proxies {
    fn start(servers: &Servers, node_port: u16) -> Self {
        let nats = servers.ports().into_iter();
        Self {
            nats: nats.map(CuttingProxy::start).collect(),
            link: CuttingProxy::start(node_port),
        }
    }

    fn advertised(&self) -> String {
        format!("http://127.0.0.1:{}", self.link.port)
    }
}

/// The processes, and what is between them.
struct Machines {
    servers: Servers,
    proxies: Vec<Proxies>,
    nodes: Vec<Option<Server>>,
}

/// Lets something else happen to connections for a while; says what.
fn cut(proxies: &[&CuttingProxy], random: &mut Random) -> String {
    let way = [Way::Cut, Way::Stalled, Way::HalfOpen][random.below(3) as usize];
    let lasts = Duration::from_millis(CUT_MS + random.below(CUT_MS));
    proxies.iter().for_each(|proxy| proxy.set(way));
    std::thread::sleep(lasts);
    proxies.iter().for_each(|proxy| proxy.set(Way::Open));
    format!("{way:?} for {lasts:?}")
}

/// One fault, and what it took to get over it.
fn fault(lab: &Lab, random: &mut Random, kind: u64, machines: &mut Machines) -> String {
    let Machines {
        servers,
        proxies,
        nodes,
    } = machines;
    let owner_now = (0..NODES).find_map(|asked| owner(lab, asked));
    // Mostly it hits the owner.
    let other = random.below(NODES as u64) as usize;
    let at = if random.below(4) > 0 {
        owner_now.unwrap_or(other)
    } else {
        other
    };
    let is_owner = owner_now == Some(at);
    let role = if is_owner {
        "the owner"
    } else {
        "which relays"
    };
    let since = Instant::now();
    let took = |lab: &Lab| {
        if is_owner {
            format!(
                "node {at}, {role}; another one after {:?}",
                take_over(lab, at, since)
            )
        } else {
            format!("node {at}, {role}")
        }
    };
    match kind {
        0 => {
            let folder = nodes[at].take().expect("a node").kill();
            let took = took(lab);
            lab.went_down(at, since);
            nodes[at] = Some(start(&proxies[at], &folder, address(&lab.urls[at])));
            format!("SIGKILL of {took}")
        }
        1 => {
            nodes[at].as_ref().expect("a node").signal("STOP");
            let took = took(lab);
            std::thread::sleep(STOPPED.saturating_sub(since.elapsed()));
            nodes[at].as_ref().expect("a node").signal("CONT");
            format!("SIGSTOP of {took}")
        }
        2 => {
            let node = nodes[at].take().expect("a node");
            let folder = node.folder.clone();
            node.signal("TERM");
            assert!(node.wait().success(), "it ended well");
            let took = took(lab);
            lab.went_down(at, since);
            nodes[at] = Some(start(&proxies[at], &folder, address(&lab.urls[at])));
            format!("SIGTERM of {took}")
        }
        3 => {
            let all: Vec<&CuttingProxy> = proxies[at].nats.iter().collect();
            format!("{} between NATS and node {at}, {role}", cut(&all, random))
        }
        4 => {
            let server = random.below(3) as usize;
            let all: Vec<&CuttingProxy> = proxies.iter().map(|node| &node.nats[server]).collect();
            format!("{} before NATS server {server}", cut(&all, random))
        }
        5 => format!(
            "{} before node {at}, {role}",
            cut(&[&proxies[at].link], random)
        ),
        _ => fault_of_nats(random, servers),
    }
}

fn fault_of_nats(random: &mut Random, servers: &mut Servers) -> String {
    let server = random.below(3) as usize;
    if random.below(2) == 0 {
        servers.signal(server, "STOP");
        std::thread::sleep(STOPPED);
        servers.signal(server, "CONT");
        return format!("SIGSTOP of NATS server {server}");
    }
    servers.kill(server);
    std::thread::sleep(Duration::from_secs(1));
    servers.restart(server);
    format!("SIGKILL of NATS server {server}")
}

fn address(url: &str) -> &str {
    url.strip_prefix("http://").expect("an address")
}

/// No two members have an event at a time.
fn check_hands(lab: &Lab) -> usize {
    let lost = lab.lost.lock().expect("a lock").clone();
    let mut by_event: BTreeMap<String, Vec<Held>> = BTreeMap::new();
    for mut held in lab.held.lock().expect("a lock").iter().cloned() {
        for (node, since, ended) in &lost {
            if *node == held.node && held.from < *ended && held.until > *since {
                held.until = held.from.max(*since);
            }
        }
        by_event.entry(held.id.clone()).or_default().push(held);
    }
    let mut deliveries = 0;
    for (id, mut hands) in by_event {
        hands.sort_by_key(|held| held.from);
        deliveries += hands.len();
        for pair in hands.windows(2) {
            let [one, other] = pair else { continue };
            let at = |moment: Instant| moment - lab.began;
            assert!(
                other.from >= one.until,
                "{id} was in two hands: on node {} from {:?} to {:?}, on node {} from {:?} to {:?}",
                one.node,
                at(one.from),
                at(one.until),
                other.node,
                at(other.from),
                at(other.until),
            );
        }
    }
    deliveries
}

fn new_lab(nodes: &[Option<Server>], proxies: &[Proxies]) -> Arc<Lab> {
    Arc::new(Lab {
        advertised: proxies.iter().map(Proxies::advertised).collect(),
        urls: nodes
            .iter()
            .flatten()
            .map(|node| node.url.clone())
            .collect(),
        is_over: AtomicBool::new(false),
        is_published: AtomicBool::new(false),
        acknowledged: Mutex::default(),
        settled: Mutex::default(),
        held: Mutex::default(),
        seen: Mutex::default(),
        by_socket: AtomicU64::new(0),
        lost: Mutex::default(),
        latest: (0..NODES).map(|_| Mutex::default()).collect(),
        published: AtomicU64::new(0),
        began: Instant::now(),
    })
}

/// A publisher, a member that pulls and one on a WebSocket, for each node.
fn start_clients(lab: &Arc<Lab>, random: &mut Random) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for at in 0..NODES {
        let (publishing, consuming) = (lab.clone(), lab.clone());
        let seeds = (
            Random::seeded(random.number()),
            Random::seeded(random.number()),
        );
        threads.push(std::thread::spawn(move || {
            publish(&publishing, at, seeds.0)
        }));
        threads.push(std::thread::spawn(move || consume(&consuming, at, seeds.1)));
        let (lab, seeded) = (lab.clone(), Random::seeded(random.number()));
        threads.push(std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().expect("a runtime");
            runtime.block_on(consume_by_socket(&lab, at, seeded));
        }));
    }
    threads
}

#[test]
fn a_group_on_three_nodes_gets_over_faults_of_all_kinds() {
    let (rounds, seed) = (
        number("PROMBUS_CLUSTER_ROUNDS", KINDS),
        number("PROMBUS_CLUSTER_SEED", 1),
    );
    let servers = Servers::start(3, "");
    let ports = free_ports(NODES);
    let proxies: Vec<Proxies> = ports
        .iter()
        .map(|port| Proxies::start(&servers, *port))
        .collect();
    let folders: Vec<Arc<TempDir>> = (0..NODES)
        .map(|_| Arc::new(TempDir::new().expect("a folder")))
        .collect();
    let mut nodes: Vec<Option<Server>> = Vec::new();
    for ((folder, proxies), port) in folders.iter().zip(&proxies).zip(ports) {
        let address = format!("127.0.0.1:{port}");
        nodes.push(Some(start(proxies, folder, &address)));
    }
    make_group(nodes[0].as_ref().expect("a node"));
    let lab = new_lab(&nodes, &proxies);
    let mut random = Random::seeded(seed);
    let threads = start_clients(&lab, &mut random);
    let mut machines = Machines {
        servers,
        proxies,
        nodes,
    };
    std::thread::sleep(Duration::from_secs(2));
    for round in 0..rounds {
        // Each kind in turn, so that few rounds have most of them.
        let kind = (seed + round) % KINDS;
        let what = fault(&lab, &mut random, kind, &mut machines);
        let at = lab.began.elapsed();
        println!("seed {seed}, round {round}, {at:.1?}: {what}");
        std::thread::sleep(Duration::from_secs(2));
    }
    lab.is_over.store(true, Ordering::Relaxed);
    let nodes = &machines.nodes;
    rest(&lab, nodes);
    lab.is_published.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("it went well");
    }
    if std::env::var_os("PROMBUS_CLUSTER_LOG").is_some() {
        for (at, node) in nodes.iter().flatten().enumerate() {
            println!("node {at}:\n{}", node.logged());
        }
    }
    check_delivered(&lab);
    let deliveries = check_hands(&lab);
    let node = nodes[0].as_ref().expect("a node");
    let (status, letters) = node.get("/replay?topic=dlq.orders");
    assert_eq!(status, 404, "dead letters: {letters}");
    let by_socket = lab.by_socket.load(Ordering::Relaxed);
    assert!(by_socket > 0, "members on WebSockets get their share");
    println!(
        "{} events, {deliveries} deliveries, {by_socket} of them over WebSockets",
        lab.published.load(Ordering::Relaxed)
    );
}

/// Makes the group before its members come.
fn make_group(node: &Server) {
    let (status, said) = node.post("/publish/orders", "0");
    assert_eq!(status, 200, "{said}");
    let pull = json!({"topic": "orders", "group": "g", "max": 1, "wait_ms": 0});
    let (status, said) = node.post("/pull", &pull.to_string());
    assert_eq!(status, 200, "{said}");
    let set = [
        "group",
        "set",
        "orders",
        "g",
        "--max-attempts",
        MAX_ATTEMPTS,
    ];
    let set = node.command(&set);
    assert!(set.status.success(), "{set:?}");
}

/// Waits until everything that was acknowledged is settled.
fn rest(lab: &Lab, nodes: &[Option<Server>]) {
    let began = Instant::now();
    let node = nodes[0].as_ref().expect("a node");
    loop {
        let acknowledged = lab.acknowledged.lock().expect("a lock").clone();
        let (_, said) = node.get("/groups?topic=orders");
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        let group = &said["groups"][0];
        if group["lag"] == 0 && group["in_flight"] == 0 && !acknowledged.is_empty() {
            break;
        }
        assert!(began.elapsed() < REST, "it never came to rest: {said}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What is settled was in a member's hands: nothing is lost on the way. Only when the members have ended has each noted
/// what it had.
fn check_delivered(lab: &Lab) {
    let mut seen = lab.seen.lock().expect("a lock").clone();
    let held = lab.held.lock().expect("a lock").clone();
    seen.extend(held.into_iter().map(|held| held.id));
    let acknowledged = lab.acknowledged.lock().expect("a lock").clone();
    let lost: Vec<&String> = acknowledged.difference(&seen).collect();
    assert!(lost.is_empty(), "never delivered: {lost:?}");
}
