//! What the three sources say together, and what is refused.

use super::*;
use std::io::Write;

fn load(file: &str, environment: &[(&str, &str)], flags: &str) -> anyhow::Result<Config> {
    let mut on_disk = tempfile::NamedTempFile::new().expect("a file");
    on_disk.write_all(file.as_bytes()).expect("it is written");
    let environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let flags = flags.parse().expect("flags as a table");
    Config::load(Some(on_disk.path()), environment, flags)
}

fn refused(file: &str, environment: &[(&str, &str)], flags: &str) -> String {
    let error = load(file, environment, flags).expect_err("a refusal");
    format!("{error:#}")
}

#[test]
fn nothing_said_gives_the_defaults() {
    let config = load("", &[("HOME", "x")], "").expect("a configuration");
    assert_eq!(config, Config::default());
    assert_eq!(config.listen[0].to_string(), "127.0.0.1:8090");
}

#[test]
fn flags_win_over_environment_over_file() {
    let file = "store = \"file:a\"\nmax_connections = 1\nauto_create_topics = false\n[limits]\nmax_payload_bytes = 100";
    let environment = [
        ("PROMBUS_STORE", "file:b"),
        ("PROMBUS_MAX_CONNECTIONS", "2"),
        ("PROMBUS_LIMITS__MAX_MESSAGE_BYTES", "5000"),
        ("PROMBUS_LIMITS__MAX_LOST_ATTEMPTS", "3"),
        ("PROMBUS_LIMITS__MAX_UNDO_SETTLED", "0"),
        ("PROMBUS_LISTEN", "127.0.0.1:1, [::1]:2"),
        ("PROMBUS_URL", "http://elsewhere"),
    ];
    let config = load(file, &environment, "store = \"memory:\"").expect("a configuration");
    assert_eq!(config.store, "memory:");
    assert_eq!(config.max_connections, 2);
    assert!(!config.auto_create_topics);
    assert_eq!(config.limits.max_payload_bytes, 100);
    assert_eq!(config.limits.max_message_bytes, 5_000);
    assert_eq!(config.limits.max_lost_attempts, 3);
    assert_eq!(config.limits.max_undo_settled, 0);
    assert_eq!(config.listen.len(), 2);
}

#[test]
fn a_token_comes_from_its_short_names_and_stays_text() {
    let token = |environment: &[(&str, &str)]| {
        let config = load("", environment, "").expect("a configuration");
        config.auth.token.map(|token| token.expose().to_owned())
    };
    assert_eq!(token(&[("WS_TOKEN", "007")]).as_deref(), Some("007"));
    let both = [("PROMBUS_TOKEN", "new"), ("WS_TOKEN", "old")];
    assert_eq!(token(&both).as_deref(), Some("new"));
}

#[test]
fn an_unknown_key_is_named_with_where_it_stands() {
    let error = refused("listn = []", &[], "");
    assert!(
        error.contains("listn") && error.contains("line 1"),
        "{error}"
    );
    let error = refused("[limits]\nmax_paylod_bytes = 1", &[], "");
    assert!(error.contains("max_paylod_bytes"), "{error}");
    let error = refused("", &[("PROMBUS_STROE", "memory:")], "");
    assert!(
        error.contains("PROMBUS_STROE") && error.contains("stroe"),
        "{error}"
    );
    let error = refused("[[topics]]\nname = \"t\"\npartition = 3", &[], "");
    assert!(error.contains("partition"), "{error}");
}

#[test]
fn values_that_make_no_sense_are_refused() {
    for (file, word) in [
        ("listen = []", "listen"),
        ("listen = [\"nowhere\"]", "listen"),
        (
            "limits.conn_publish = { capacity = 0, refill_per_sec = 1 }",
            "conn_publish",
        ),
        ("limits.max_lost_attempts = 0", "max_lost_attempts"),
        ("limits.max_lost_attempts = -1", "max_lost_attempts"),
        ("limits.max_undo_settled = -1", "max_undo_settled"),
        ("[[topics]]\nname = \"a b\"", "a b"),
        (
            "[[topics]]\nname = \"t\"\nretention = \"3 days\"",
            "retention",
        ),
        ("[[topics]]\nname = \"t\"\nmax_events = 0", "max_events"),
        (
            "[[topics]]\nname = \"t\"\nsnapshot_topic = \"a b\"",
            "snapshot_topic",
        ),
        (
            "[[topics]]\nname = \"t\"\nsnapshot_interval = \"often\"",
            "snapshot_interval",
        ),
        (
            "[[topics]]\nname = \"t\"\nsnapshot_interval = \"0s\"",
            "snapshot_interval",
        ),
        (
            "[[topics]]\nname = \"t.*\"\nsnapshot_topic = \"s\"",
            "pattern",
        ),
        ("auth = { token = \"a\", jwt_secret = \"b\" }", "jwt_secret"),
        ("auth = { token = \"\" }", "token"),
    ] {
        let error = refused(file, &[], "");
        assert!(error.contains(word), "{file}: {error}");
    }
}

#[test]
fn the_world_is_let_in_only_with_a_token_or_on_purpose() {
    let open = "listen = [\"0.0.0.0:8090\"]\n";
    let error = refused(open, &[], "");
    assert!(
        error.contains("--token") && error.contains("--insecure"),
        "{error}"
    );
    assert!(load(open, &[("WS_TOKEN", "t")], "").is_ok());
    assert!(load(open, &[], "insecure = true").is_ok());
}

#[test]
fn topics_say_how_they_are_kept() {
    let file = "[[topics]]\nname = \"heartbeat.*\"\nretention = \"3d\"\ndurability = \"os\"\n\
        publish = { capacity = 5, refill_per_sec = 6 }\n[[topics]]\nname = \"state\"\ncompaction = true\n\
        snapshot_topic = \"state.snapshot\"\nsnapshot_interval = \"5s\"";
    let config = load(file, &[], "").expect("a configuration");
    let [beats, state] = config.topics.as_slice() else {
        panic!("two topics");
    };
    assert!(!beats.is_one() && state.is_one() && state.config().compaction);
    assert_eq!(beats.config().retention_ms, Some(3 * 24 * 60 * 60 * 1_000));
    assert_eq!(beats.config().durability, prombus::Durability::Os);
    let kept = state.config();
    assert_eq!(kept.snapshot_topic.as_deref(), Some("state.snapshot"));
    assert_eq!(kept.snapshot_interval_ms, Some(5_000));
    assert_eq!(beats.publish.map(|rate| rate.refill_per_sec), Some(6));
}

#[test]
fn projectors_are_off_until_they_are_turned_on_anywhere() {
    let process = |file: &str, environment: &[(&str, &str)], flags: &str| {
        let config = load(file, environment, flags).expect("a configuration");
        config.projectors.process
    };
    assert!(!process("", &[], ""));
    assert!(process("[projectors]\nprocess = true", &[], ""));
    let on = [("PROMBUS_PROJECTORS__PROCESS", "true")];
    assert!(process("[projectors]\nprocess = false", &on, ""));
    assert!(!process("", &on, "projectors.process = false"));
    let error = refused("[projectors]\nproces = true", &[], "");
    assert!(error.contains("proces"), "{error}");
}

#[test]
fn a_file_that_was_asked_for_has_to_be_there() {
    let missing = Path::new("no-such-folder/prombus.toml");
    let error = Config::load(Some(missing), [], Table::new()).expect_err("a refusal");
    assert!(error.to_string().contains("no-such-folder"), "{error}");
}

#[test]
fn variables_that_kubernetes_injects_are_no_settings() {
    let injected = [
        ("PROMBUS_PORT", "tcp://10.0.0.1:8090"),
        ("PROMBUS_SERVICE_HOST", "10.0.0.1"),
        ("PROMBUS_SERVICE_PORT", "8090"),
        ("PROMBUS_SERVICE_PORT_HTTP", "8090"),
        ("PROMBUS_PORT_8090_TCP", "tcp://10.0.0.1:8090"),
        ("PROMBUS_PORT_8090_TCP_PROTO", "tcp"),
        ("PROMBUS_PORT_8090_TCP_PORT", "8090"),
        ("PROMBUS_PORT_8090_TCP_ADDR", "10.0.0.1"),
        ("PROMBUS_WEB_SERVICE_HOST", "10.0.0.2"),
        ("HTTP_PORT", "tcp://10.0.0.3:80"),
    ];
    let config = load("", &injected, "").expect("a configuration");
    assert_eq!(config, Config::default());
    let error = refused("", &[("PROMBUS_PROT", "1")], "");
    assert!(error.contains("PROMBUS_PROT"), "{error}");
}

#[test]
fn ports_come_from_the_environment() {
    let listen = |file: &str, environment: &[(&str, &str)], flags: &str| {
        let config = load(file, environment, flags).expect("a configuration");
        let listen = config.listen.iter().map(ToString::to_string);
        listen.collect::<Vec<_>>()
    };
    assert_eq!(listen("", &[("WS_PORT", "9000")], ""), ["127.0.0.1:9000"]);
    let both = [("WS_PORT", "9000"), ("HTTP_PORT", "9001")];
    assert_eq!(listen("", &both, ""), ["127.0.0.1:9000", "127.0.0.1:9001"]);
    let file = "listen = [\"[::1]:8090\"]\n";
    assert_eq!(listen(file, &[("HTTP_PORT", "9001")], ""), ["[::1]:9001"]);
    let flag = "listen = [\"localhost:7000\"]";
    assert_eq!(listen("", &both, flag), ["127.0.0.1:7000"]);
    let error = refused("", &[("WS_PORT", "many")], "");
    assert!(error.contains("WS_PORT"), "{error}");
}

#[test]
fn sizes_may_have_units() {
    let file = "[[topics]]\nname = \"logs\"\nmax_bytes = \"1GiB\"\n[[topics]]\nname = \"more\"\nmax_bytes = 5000\n";
    let config = load(file, &[], "").expect("a configuration");
    assert_eq!(config.topics[0].config().max_bytes, Some(1 << 30));
    assert_eq!(config.topics[1].config().max_bytes, Some(5_000));
}

#[test]
fn secrets_come_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "a token of the test\n").unwrap();
    let variable = [("PROMBUS_TOKEN_FILE", path.to_str().unwrap())];
    let config = load("", &variable, "").expect("a configuration");
    let direct = load("", &[("PROMBUS_TOKEN", "a token of the test")], "");
    assert_eq!(config, direct.expect("a configuration"));
    let error = refused("", &[("PROMBUS_JWT_SECRET_FILE", "no-such-file")], "");
    assert!(error.contains("no-such-file"), "{error}");
}

#[cfg(feature = "otlp")]
#[test]
fn a_collector_is_named_in_the_file_or_the_environment() {
    let file = "[telemetry]\notlp_endpoint = \"http://127.0.0.1:4318\"";
    let config = load(file, &[], "").expect("a configuration");
    let endpoint = config.telemetry.otlp_endpoint.as_deref();
    assert_eq!(endpoint, Some("http://127.0.0.1:4318"));
    let environment = [("PROMBUS_TELEMETRY__OTLP_ENDPOINT", "http://collector:4318")];
    let config = load(file, &environment, "").expect("a configuration");
    let endpoint = config.telemetry.otlp_endpoint.as_deref();
    assert_eq!(endpoint, Some("http://collector:4318"));
    let file = "[telemetry]\notlp_endpoint = \"https://collector:4318\"";
    assert!(refused(file, &[], "").contains("only http:// is spoken"));
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_collector_needs_a_binary_that_can_reach_it() {
    let file = "[telemetry]\notlp_endpoint = \"http://127.0.0.1:4318\"";
    assert!(refused(file, &[], "").contains("--features otlp"));
}
