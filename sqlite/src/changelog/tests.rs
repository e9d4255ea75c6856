//! Tables against a plain fold over the same events, and everything that is refused.

use super::*;
use proptest::prelude::*;
use rusqlite::types::Value;
use std::collections::BTreeMap;

const TOPIC: &str = "orders.state";

fn event(seq: u64, key: Option<&str>, payload: &str) -> Event {
    let key = key.map_or(String::new(), |key| {
        format!(r#""key":{},"#, serde_json::to_string(key).expect("text"))
    });
    let text = format!(
        r#"{{"id":"id-{seq}","ts":{},"topic":"{TOPIC}","seq":{seq},{key}"payload":{payload}}}"#,
        1000 + seq
    );
    Event::from_json(text).expect("a record")
}

fn memory() -> Connection {
    Connection::open_in_memory().expect("a database")
}

fn rows(connection: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut query = connection.prepare(sql).expect("a query");
    let columns = query.column_count();
    let rows = query.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
    let rows: rusqlite::Result<_> = rows.expect("rows").collect();
    rows.expect("rows")
}

fn words(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn columns(texts: &[&str]) -> Vec<Column> {
    texts
        .iter()
        .map(|text| text.parse().expect("a column"))
        .collect()
}

#[test]
fn keys_become_rows_and_tombstones_remove_them() {
    let options = ChangelogOptions::new("orders");
    let mut changelog = Changelog::open(memory(), TOPIC, &options).expect("a table");
    let applied = changelog.apply(&[
        event(1, Some("a"), r#"{"n":1}"#),
        event(2, Some("b"), "2"),
        event(3, None, "3"),
        event(4, Some("a"), r#"{"n":4}"#),
        event(5, Some("b"), "null"),
    ]);
    let applied = applied.expect("a batch");
    assert_eq!((applied.events, applied.upserts), (5, 3));
    assert_eq!((applied.deletes, applied.keyless), (1, 1));
    let found = rows(
        changelog.connection(),
        "SELECT key, payload, ts, seq, id FROM orders",
    );
    let expected = [
        words("a"),
        words(r#"{"n":4}"#),
        Value::Integer(1004),
        Value::Integer(4),
        words("id-4"),
    ];
    assert_eq!(found, [expected]);
    assert_eq!(changelog.position().seq, 5);
    let found = rows(
        changelog.connection(),
        "SELECT projector, topic, seq, id FROM prombus_positions",
    );
    assert_eq!(
        found,
        [[
            words("orders"),
            words(TOPIC),
            Value::Integer(5),
            words("id-5")
        ]]
    );
}

#[test]
fn columns_come_from_fields_and_odd_names_are_only_names() {
    let odd = r#"o"; DROP TABLE orders; --"#;
    let options = ChangelogOptions {
        key_column: "order id".to_owned(),
        columns: columns(&[
            "city=address.city:text",
            "total=total:real",
            "seq=$seq:integer",
        ]),
        indexes: vec![
            vec!["city".to_owned()],
            vec!["city".to_owned(), "total".to_owned()],
        ],
        ..ChangelogOptions::new(odd)
    };
    let mut changelog = Changelog::open(memory(), TOPIC, &options).expect("a table");
    let payload = r#"{"address":{"city":"Köln","zip":"5"},"total":12,"more":[]}"#;
    changelog
        .apply(&[event(1, Some("a"), payload), event(2, Some("b"), "{}")])
        .expect("a batch");
    let all = format!(
        "SELECT \"order id\", city, total, seq FROM {}",
        crate::names::quoted(odd)
    );
    let found = rows(changelog.connection(), &all);
    let first = [
        words("a"),
        words("Köln"),
        Value::Real(12.0),
        Value::Integer(1),
    ];
    let second = [words("b"), Value::Null, Value::Null, Value::Integer(2)];
    assert_eq!(found, [first, second]);
    let indexes = rows(
        changelog.connection(),
        "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
    );
    assert_eq!(indexes, [[Value::Integer(2)]]);
}

#[test]
fn opening_again_goes_on_and_another_definition_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let open = |options: &ChangelogOptions| {
        Changelog::open(crate::open(&path).expect("a database"), TOPIC, options)
    };
    let options = ChangelogOptions::new("orders");
    let mut changelog = open(&options).expect("a table");
    changelog
        .apply(&[event(7, Some("a"), "1")])
        .expect("a batch");
    drop(changelog);
    let indexed = ChangelogOptions {
        indexes: vec![vec!["ts".to_owned()]],
        ..options.clone()
    };
    let again = open(&indexed).expect("an index may be added");
    assert_eq!(
        (again.position().seq, again.position().id.as_str()),
        (7, "id-7")
    );
    drop(again);
    let mapped = ChangelogOptions {
        columns: columns(&[
            "payload=$payload:json",
            "ts=$ts:integer",
            "seq=$seq:integer",
            "id=n:text",
        ]),
        ..options.clone()
    };
    let error = open(&mapped).expect_err("same shape, other meaning");
    assert!(matches!(error, ProjectError::OtherDefinition(_)), "{error}");
    let other = Changelog::open(crate::open(&path).expect("a database"), "other", &options);
    let error = other.expect_err("the rows are of another topic");
    assert!(error.to_string().contains("not from this topic"), "{error}");

    crate::open(&path)
        .expect("a database")
        .execute_batch("DROP TABLE orders")
        .expect("gone");
    let anew = Changelog::open(crate::open(&path).expect("a database"), "other", &options);
    let mut anew = anew.expect("it is made again, also of another topic");
    assert_eq!(anew.position(), &Position::default());
    anew.apply(&[event(1, Some("a"), "1")]).expect("a batch");
    let error = open(&options).expect_err("the old position went with the old table");
    assert!(error.to_string().contains("not from this topic"), "{error}");
}

#[test]
fn tables_that_do_not_fit_are_refused_with_the_difference() {
    for (table, why) in [
        (
            "CREATE TABLE t (key TEXT PRIMARY KEY NOT NULL, payload TEXT)",
            "no column ts",
        ),
        (
            "CREATE TABLE t (key TEXT PRIMARY KEY NOT NULL, payload TEXT, ts TEXT, seq INTEGER, id TEXT)",
            "column 3 is ts (TEXT)",
        ),
        (
            "CREATE TABLE t (key TEXT, payload TEXT, ts INTEGER, seq INTEGER, id TEXT)",
            "the primary key",
        ),
        (
            "CREATE TABLE t (key TEXT PRIMARY KEY NOT NULL, payload TEXT, ts INTEGER, seq INTEGER, id TEXT, z)",
            "one more column, z",
        ),
        ("CREATE VIEW t AS SELECT 1", "it is a view"),
    ] {
        let connection = memory();
        connection.execute_batch(table).expect("a table");
        let error = Changelog::open(connection, TOPIC, &ChangelogOptions::new("t"));
        let error = error.expect_err(table).to_string();
        assert!(error.contains(why), "{error}");
    }
    let twice = ChangelogOptions {
        columns: columns(&["a", "A"]),
        ..ChangelogOptions::new("t")
    };
    let nothing = ChangelogOptions {
        indexes: vec![vec!["x".to_owned()]],
        ..ChangelogOptions::new("t")
    };
    for options in [
        twice,
        nothing,
        ChangelogOptions::new("sqlite_x"),
        ChangelogOptions::new(""),
    ] {
        assert!(
            Changelog::open(memory(), TOPIC, &options).is_err(),
            "{options:?}"
        );
    }
}

#[test]
fn two_of_the_same_projector_do_not_repeat_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let open = || {
        let connection = crate::open(&path).expect("a database");
        Changelog::open(connection, TOPIC, &ChangelogOptions::new("orders")).expect("a table")
    };
    let (mut first, mut second) = (open(), open());
    first
        .apply(&[event(1, Some("a"), "1"), event(2, Some("a"), "2")])
        .expect("a batch");
    let late = second.apply(&[event(1, Some("a"), "1")]).expect("nothing");
    assert_eq!(late, Applied::default());
    assert_eq!(second.position().seq, 2);
    assert_eq!(
        rows(second.connection(), "SELECT payload FROM orders"),
        [[words("2")]]
    );
}

#[test]
fn a_file_that_others_write_to_for_long_is_said_to_be_locked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let other = crate::open(&path).expect("a database");
    other
        .execute_batch("BEGIN IMMEDIATE")
        .expect("a transaction");
    let connection = crate::open(&path).expect("a database");
    let patience = std::time::Duration::from_millis(1);
    connection.busy_timeout(patience).expect("less patience");
    let error = Changelog::open(connection, TOPIC, &ChangelogOptions::new("t"));
    let error = error.expect_err("it is locked");
    assert!(
        error.to_string().contains("the database is locked"),
        "{error}"
    );
}

/// A published payload: a tombstone, or a version and a value.
#[derive(Debug, Clone)]
enum Said {
    Gone,
    Value { version: Option<i64>, value: u32 },
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        1 => Just(Said::Gone),
        5 => (prop::option::weighted(0.8, -3_i64..6), any::<u32>())
            .prop_map(|(version, value)| Said::Value { version, value }),
    ]
}

impl Said {
    fn payload(&self) -> String {
        match self {
            Self::Gone => "null".to_owned(),
            Self::Value {
                version: None,
                value,
            } => format!(r#"{{"value":{value},"v":"none"}}"#),
            Self::Value {
                version: Some(version),
                value,
            } => {
                format!(r#"{{"v":{version},"value":{value}}}"#)
            }
        }
    }
}

/// The rows as the contract has them: key to version and value.
fn fold(log: &[(Option<u8>, Said)], is_guarded: bool) -> BTreeMap<String, (Option<i64>, u32)> {
    let mut rows = BTreeMap::new();
    for (key, said) in log {
        let Some(key) = key.map(|key| format!("k{key}")) else {
            continue;
        };
        match said {
            Said::Gone => drop(rows.remove(&key)),
            Said::Value { version, value } => {
                let there: Option<&(Option<i64>, u32)> = rows.get(&key);
                // No version is less than any, as `Option` orders them.
                let is_older = there.is_some_and(|(there, _)| version < there);
                if !is_guarded || !is_older {
                    rows.insert(key, (*version, *value));
                }
            }
        }
    }
    rows
}

proptest! {
    // Each case opens and closes files many times.
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_table_is_a_fold_over_its_topic(
        log in prop::collection::vec((prop::option::weighted(0.95, 0_u8..6), said()), 0..120),
        cuts in prop::collection::vec(1_usize..40, 1..10),
        is_guarded: bool,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        let options = ChangelogOptions {
            columns: columns(&["version=v", "value:integer"]),
            version: is_guarded.then(|| "v".parse().expect("a version")),
            ..ChangelogOptions::new("t")
        };
        let events: Vec<Event> = (1..).zip(&log).map(|(seq, (key, said))| {
            let key = key.map(|key| format!("k{key}"));
            event(seq, key.as_deref(), &said.payload())
        }).collect();
        let mut done = 0;
        let mut cuts = cuts.into_iter().cycle();
        // Every batch by a fresh process, as it were.
        while done < events.len() {
            let connection = crate::open(&path).expect("a database");
            let mut changelog = Changelog::open(connection, "t", &options).expect("a table");
            prop_assert_eq!(changelog.position().seq, done as u64);
            let end = events.len().min(done + cuts.next().unwrap_or(1));
            changelog.apply(&events[done..end]).expect("a batch");
            done = end;
        }
        let connection = crate::open(&path).expect("a database");
        let changelog = Changelog::open(connection, "t", &options).expect("a table");
        let found = rows(changelog.connection(), "SELECT key, version, value FROM t ORDER BY key");
        let expected: Vec<Vec<Value>> = fold(&log, is_guarded).into_iter().map(|(key, (version, value))| {
            let version = version.map_or(words("none"), Value::Integer);
            vec![Value::Text(key), version, Value::Integer(value.into())]
        }).collect();
        prop_assert_eq!(found, expected);
    }
}
