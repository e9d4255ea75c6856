//! The document against the code that it is derived from, against itself, and against bodies as they are written.

use super::*;
use crate::code::Code;
use crate::frames::{Ack, Nack};
use crate::http::*;
use crate::record::Record;
use schemars::JsonSchema;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// The document as the code has it.
fn derived() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "prombus",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A durable event bus. Publishing and subscribing at speed goes over the WebSocket at `/ws`; \
                everything here works with plain HTTP.",
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"},
        },
        "security": [{}, {"bearer": []}, {"token": []}],
        "paths": paths::all(),
        "components": {
            "schemas": schemas::all(),
            "responses": {
                "Error": {
                    "description": errors(),
                    "headers": {
                        "Retry-After": {
                            "description": "With 429: seconds until it is worth another try.",
                            "schema": {"type": "integer"},
                        },
                    },
                    "content": {"application/json": {"schema": operation::reference("ErrorBody")}},
                },
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A static token or a JWT."},
                "token": {
                    "type": "apiKey",
                    "in": "query",
                    "name": "token",
                    "description": "For browsers that cannot set the header.",
                },
            },
        },
    })
}

/// Every code with its status and meaning.
fn errors() -> String {
    let line = |code: &Code| format!("- {} `{code}`: {}", code.http_status(), code.meaning());
    let lines: Vec<String> = Code::ALL.iter().map(line).collect();
    format!(
        "The status says what kind of error it is, the code which one.\n\n{}",
        lines.join("\n")
    )
}

#[test]
fn the_checked_in_document_is_this_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let derived = derived();
    if std::env::var_os("PROMBUS_WRITE_OPENAPI").is_some() {
        let text = serde_json::to_string_pretty(&derived).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let checked_in: Value = serde_json::from_str(&text).unwrap();
    assert!(
        checked_in == derived,
        "api/openapi.json is not what the code says: run this test with PROMBUS_WRITE_OPENAPI=1"
    );
}

#[test]
fn references_lead_somewhere_and_no_schema_is_forgotten() {
    let document = derived();
    let mut used = BTreeSet::new();
    references(&document, &mut used);
    for reference in &used {
        let pointer = reference.trim_start_matches('#');
        assert!(
            document.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
    // These stand on lines or inside payloads, where a reference cannot.
    let in_prose = ["Envelope", "DeadLetter"];
    for name in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        let is_used = used.contains(&format!("#/components/schemas/{name}"));
        assert!(
            is_used || in_prose.contains(&name.as_str()),
            "{name} is not used"
        );
    }
}

#[test]
fn operations_have_their_own_ids_and_their_path_parameters() {
    let document = derived();
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for operation in operations.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} stands twice");
            let parameters = operation["parameters"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let in_path = parameters.iter().any(|parameter| parameter["in"] == "path");
            assert_eq!(path.contains('{'), in_path, "{path}");
        }
    }
}

#[test]
fn every_code_is_described() {
    let document = derived();
    let words = document["components"]["schemas"]["Code"]["enum"]
        .as_array()
        .unwrap();
    let text = document["components"]["responses"]["Error"]["description"]
        .as_str()
        .unwrap();
    for code in Code::ALL {
        assert!(words.contains(&json!(code.as_str())), "{code}");
        assert!(
            text.contains(&format!("- {} `{code}`: ", code.http_status())),
            "{code}"
        );
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(
                fields
                    .get("$ref")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// Whether a body is as the document says.
fn fits(schema: &str, body: &Value) -> bool {
    let components = derived()["components"].take();
    let schema =
        json!({"$ref": format!("#/components/schemas/{schema}"), "components": components});
    jsonschema::draft202012::is_valid(&schema, body)
}

/// The document takes the same bodies as the code that reads them.
fn agree<'a, T: Body<'a> + JsonSchema>(good: &[&'a str], bad: &[&'a str]) {
    let bodies = good.iter().map(|body| (*body, true));
    for (body, is_good) in bodies.chain(bad.iter().map(|body| (*body, false))) {
        let value = serde_json::from_str(body).unwrap();
        assert_eq!(
            fits(&T::schema_name(), &value),
            is_good,
            "described: {body}"
        );
        assert_eq!(T::parse(body.as_bytes()).is_ok(), is_good, "read: {body}");
    }
}

#[test]
fn requests_are_described_as_strictly_as_they_are_read() {
    agree::<Seek>(
        &[r#"{"topic":"t","group":"g","seq":5,"dry_run":null}"#],
        &[
            r#"{"topic":"t","group":"g"}"#,
            r#"{"topic":"t","group":"g","from":"late"}"#,
        ],
    );
    agree::<Pull>(
        &[
            r#"{"topic":"t","group":"g","max":10,"ackTimeoutMs":1,"from":"earliest","wait_ms":null}"#,
        ],
        &[
            r#"{"topic":"t","group":"g","max":-1}"#,
            r#"{"topic":"t","group":"g","maximum":1}"#,
        ],
    );
    agree::<GroupChange>(
        &[
            r#"{"topic":"t","group":"g","maxAttempts":3,"ordering":null,"filter":{"tags":["a"],"key":null}}"#,
        ],
        &[
            r#"{"topic":"t","group":"g","filter":{"tag":"a"}}"#,
            r#"{"topic":"t","group":"g","ordering":"lifo"}"#,
        ],
    );
    agree::<NamedGroup>(&[r#"{"topic":"t","group":"g"}"#], &[r#"{"topic":"t"}"#]);
    agree::<Shadow>(
        &[
            r#"{"topic":"t","group":"g","ts":1,"pace":2.5,"ttl":"30m"}"#,
            r#"{"topic":"t","group":"g","pace":"max"}"#,
        ],
        &[
            r#"{"topic":"t","group":"g","pace":"fast"}"#,
            r#"{"topic":"t","group":"g","ttl":"30"}"#,
        ],
    );
    agree::<TopicConfig>(
        &[
            r#"{"durability":"os","retention":"3d","partitions":4,"schema":"full","compaction":true}"#,
            r#"{"durability":null,"retention":null,"schema":null,"compaction":null}"#,
        ],
        &[r#"{"retantion":"3d"}"#, r#"{"durability":"none"}"#],
    );
    agree::<Redrive>(
        &[r#"{"topic":"t","ids":["a"],"payload":{},"rate":1,"to":"all","force":null}"#],
        &[
            r#"{"topic":"t","all":false}"#,
            r#"{"topic":"t","to":"some"}"#,
        ],
    );
    agree::<Envelope>(
        &[r#"{"payload":null,"seq":1,"id":"x","also_publish":[{"topic":"t","payload":[]}]}"#],
        &[r#"{"id":"x"}"#, r#"{"payload":1,"headers":["x"]}"#],
    );
    agree::<PublishAtomic>(
        &[r#"{"publish":[{"topic":"t","payload":null,"opts":{"key":null,"tags":["a"]}}]}"#],
        &[r#"{"publish":[{"topic":"t","payload":1,"opts":{"keys":"a"}}]}"#],
    );
    agree::<Ack>(
        &[r#"{"topic":"t","group":"g","ids":["a"],"publish":null}"#],
        &[r#"{"topic":"t","group":"g"}"#],
    );
    agree::<Nack>(
        &[r#"{"topic":"t","group":"g","id":"a","reason":null}"#],
        &[r#"{"topic":"t","group":"g","id":"a","ids":["b"]}"#],
    );
}

/// Those that are written by hand around stored records, and those that leave out what says nothing.
#[test]
fn replies_are_as_described() {
    let sparse = r#"{"id":"a","ts":1,"topic":"t","seq":1,"payload":null}"#;
    let full = r#"{"id":"a","sid":"s","ts":1,"topic":"t","seq":1,"key":"k","partition":0,"headers":{"a":"b"},"payload":1,"caused_by":["x"],"tags":["y"]}"#;
    let records = [sparse, full].map(|record| {
        let mut out = Vec::new();
        Record::parse(record).unwrap().write(&mut out);
        out
    });
    let records = || records.iter().map(Vec::as_slice);
    let context = Context {
        attempt: 1,
        max_attempts: 5,
        ack_deadline_ms: 30_000,
        shadow: false,
    };
    let state = |id| StateText {
        key: "k",
        payload: "null",
        ts: 1,
        seq: 1,
        id,
    };
    let is_described = |schema: &str, write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        let body = serde_json::from_slice(&out).unwrap();
        assert!(fits(schema, &body), "{schema} {body}");
    };
    is_described("EventPage", &|out| {
        write_event_page(out, "t", records(), Some(3))
    });
    is_described("LatestPage", &|out| {
        write_latest_page(out, "t", records(), None)
    });
    is_described("FindPage", &|out| {
        write_find_page(out, "t", 1, records(), None)
    });
    is_described("ListPage", &|out| {
        write_list_page(out, "t", (9, 0), [state(None), state(Some("a"))])
    });
    is_described("Pulled", &|out| {
        write_pulled(out, "t", "g", records().map(|record| (record, context)))
    });
    let info = TopicInfo {
        topic: "t".to_owned(),
        first_seq: 1,
        tail_seq: 0,
        events: 0,
        bytes: 0,
        config: TopicConfig::default(),
    };
    let row = TopicRow {
        info,
        last_ts: None,
        per_minute: 0,
        recent: Vec::new(),
    };
    let error = ErrorBody::new(Code::UnknownTopic, "no topic t");
    for (schema, reply) in [
        ("TopicRow", serde_json::to_value(&row)),
        ("TopicInfo", serde_json::to_value(&row.info)),
        ("ErrorBody", serde_json::to_value(&error)),
        ("Health", serde_json::to_value(Health::failing("full"))),
    ] {
        assert!(fits(schema, &reply.unwrap()), "{schema}");
    }
}
