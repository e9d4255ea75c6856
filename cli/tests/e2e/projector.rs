//! The process projector in the real server: turned on in the configuration, killed, and back.

use crate::server::{PATIENCE, Server, prombus};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

fn folder() -> Arc<TempDir> {
    let folder = TempDir::new().expect("a folder");
    let file = "[projectors]\nprocess = true\n";
    std::fs::write(folder.path().join("prombus.toml"), file).expect("it is written");
    Arc::new(folder)
}

#[allow(
    clippy::disallowed_methods,
    reason = "the server that is tested runs on the machine's clock"
)]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("a time").as_millis() as u64
}

/// Publishes a heartbeat that was `age_ms` ago, and returns its id.
fn beat(server: &Server, pid: u64, age_ms: u64) -> String {
    let payload = json!({"pid": pid, "name": "api", "host": "web", "cpu_pct": 2.5, "mem_mb": 64});
    let path = format!("/publish/heartbeat.received?ts={}", now_ms() - age_ms);
    let (status, answer) = server.post(&path, &payload.to_string());
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    answer["id"].as_str().expect("an id").to_owned()
}

/// Key, status and cause of an event that tells of a process.
type State = (String, String, String);

/// What was told of processes so far.
fn states(server: &Server) -> Vec<State> {
    let (status, page) = server.get("/replay?topic=process.state&from=earliest");
    if status == 404 {
        return Vec::new();
    }
    let page: Value = serde_json::from_str(&page).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let events = page["events"].as_array().expect("events").iter();
    events
        .map(|event| {
            let payload = &event["payload"];
            assert_eq!(payload["processId"], event["key"]);
            let cause = text(&event["caused_by"][0]);
            (text(&event["key"]), text(&payload["status"]), cause)
        })
        .collect()
}

/// Waits until this was told, and returns everything that was.
#[allow(
    clippy::disallowed_methods,
    reason = "another process is waited for, and its time is the machine's"
)]
fn wait_for(server: &Server, awaited: &State) -> Vec<State> {
    let started = Instant::now();
    loop {
        let states = states(server);
        if states.contains(awaited) {
            return states;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{awaited:?} was not told: {states:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn told(pid: u64, status: &str, cause: &str) -> State {
    (format!("web:api:{pid}"), status.into(), cause.into())
}

/// Those with a status. On a machine that is slow enough everybody is stale in between.
fn only(states: &[State], status: &str) -> Vec<State> {
    let with_status = states.iter().filter(|state| state.1 == status);
    with_status.cloned().collect()
}

#[test]
fn heartbeats_survive_a_kill_as_states_and_silence_is_seen() {
    let server = Server::start_in(folder(), &[]);
    let mut alive = vec![told(1, "alive", &beat(&server, 1, 0))];
    alive.push(told(2, "alive", &beat(&server, 2, 0)));
    assert_eq!(server.post("/publish/heartbeat.received", "{}").0, 200);
    // One that was seen long ago when it was published is soon found to be stale.
    let old = beat(&server, 3, 60_000);
    alive.push(told(3, "alive", &old));
    let states = wait_for(&server, &told(3, "stale", &old));
    assert_eq!(only(&states, "alive"), alive);
    let (_, info) = server.get("/topics/process.state");
    assert!(info.contains(r#""compaction":true"#), "{info}");

    let server = Server::start_in(server.kill(), &[]);
    alive.push(told(1, "alive", &beat(&server, 1, 0)));
    let states = wait_for(&server, &alive[3]);
    assert_eq!(only(&states, "alive"), alive, "nothing is told twice");
    let stale = only(&states, "stale");
    assert_eq!(stale.iter().filter(|state| state.2 == old).count(), 1);
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the server's time is the machine's, and it has to pass while none runs"
)]
fn what_died_while_the_server_was_down_is_stale_when_it_is_back() {
    // With the flag, and in a folder without a configuration.
    let flags = ["--projectors", "process"];
    let server = Server::start(&flags);
    let last = beat(&server, 1, 13_000);
    let (alive, stale) = (told(1, "alive", &last), told(1, "stale", &last));
    wait_for(&server, &alive);
    let folder = server.kill();
    std::thread::sleep(Duration::from_millis(2_500));
    let server = Server::start_in(folder, &flags);
    assert_eq!(wait_for(&server, &stale), [alive, stale]);
}

#[test]
fn it_is_off_by_default_and_on_in_dev() {
    let server = Server::start(&[]);
    beat(&server, 1, 0);
    let (status, _) = server.get("/topics/process.state");
    assert_eq!(status, 404);

    let folder = Arc::new(TempDir::new().expect("a folder"));
    let command = prombus(folder.path(), &["dev", "--listen", "127.0.0.1:0"]);
    let server = Server::ready(command, folder);
    for key in ["web-1:api:411", "web-2:api:387", "work-1:mailer:1203"] {
        let path = format!("/latest-by-key?topic=process.state&key={key}");
        let (status, latest) = patiently(&server, &path);
        assert_eq!(status, 200, "{latest}");
        assert!(latest.contains(r#""status":"alive""#), "{latest}");
    }
}

/// Asks until there is something.
#[allow(
    clippy::disallowed_methods,
    reason = "another process is waited for, and its time is the machine's"
)]
fn patiently(server: &Server, path: &str) -> (u16, String) {
    let started = Instant::now();
    loop {
        let (status, text) = server.get(path);
        if status == 200 && text.contains("payload") || started.elapsed() > PATIENCE {
            return (status, text);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
