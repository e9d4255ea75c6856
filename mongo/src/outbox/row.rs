//! A document of the outbox as an event to publish.

use crate::json::relaxed;
use mongodb::bson::{Bson, Document};

/// An event that waits to be published; its place is the document's `_id`.
pub type OutboxRow = prombus_connect::outbox::OutboxRow<Bson>;

/// Reads a document. Other programs write these, so what cannot be an event is said in words.
pub(super) fn read(document: &Document) -> Result<OutboxRow, String> {
    let place = document.get("_id").cloned().unwrap_or(Bson::Null);
    let id = match text(document, "id")? {
        Some(id) => id,
        None => default_id(&place)?,
    };
    let payload = match (text(document, "raw")?, document.get("payload")) {
        (Some(raw), _) => raw,
        (None, Some(payload)) => relaxed(payload),
        (None, None) => return Err("payload: there is none, and no raw".to_owned()),
    };
    Ok(OutboxRow {
        place,
        id,
        topic: text(document, "topic")?.ok_or("topic: there is none")?,
        payload,
        key: text(document, "key")?,
        ts: time(document)?,
        headers: headers(document)?,
        tags: texts(document, "tags")?,
        caused_by: texts(document, "caused_by")?,
        sid: text(document, "sid")?,
        attempts: match document.get("attempts") {
            Some(Bson::Int32(attempts)) => (*attempts).try_into().unwrap_or(1),
            Some(Bson::Int64(attempts)) => (*attempts).try_into().unwrap_or(1),
            _ => 1,
        },
    })
}

/// The event's id where the document names none: its own.
fn default_id(place: &Bson) -> Result<String, String> {
    match place {
        Bson::ObjectId(id) => Ok(id.to_hex()),
        Bson::String(id) => Ok(id.clone()),
        Bson::Int32(id) => Ok(id.to_string()),
        Bson::Int64(id) => Ok(id.to_string()),
        _ => Err("id: there is none, and _id is no text, number or ObjectId".to_owned()),
    }
}

fn text(document: &Document, name: &str) -> Result<Option<String>, String> {
    match document.get(name) {
        None | Some(Bson::Null) => Ok(None),
        Some(Bson::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!(
            "{name}: expected a string, not {:?}",
            other.element_type()
        )),
    }
}

/// Epoch milliseconds as a number, or a date.
fn time(document: &Document) -> Result<Option<u64>, String> {
    let ms = match document.get("ts") {
        None | Some(Bson::Null) => return Ok(None),
        Some(Bson::DateTime(date)) => date.timestamp_millis(),
        Some(Bson::Int32(ms)) => i64::from(*ms),
        Some(Bson::Int64(ms)) => *ms,
        Some(Bson::Double(ms)) => *ms as i64,
        Some(_) => return Err("ts: expected a date or epoch milliseconds".to_owned()),
    };
    let ms = u64::try_from(ms).map_err(|_| "ts is negative")?;
    Ok(Some(ms))
}

fn headers(document: &Document) -> Result<Vec<(String, String)>, String> {
    let headers = match document.get("headers") {
        None | Some(Bson::Null) => return Ok(Vec::new()),
        Some(Bson::Document(headers)) => headers,
        Some(_) => return Err("headers: expected an object of strings".to_owned()),
    };
    let header = |(name, value): (&String, &Bson)| match value {
        Bson::String(value) => Ok((name.clone(), value.clone())),
        _ => Err(format!("headers: the value of {name} is no string")),
    };
    headers.iter().map(header).collect()
}

fn texts(document: &Document, name: &str) -> Result<Vec<String>, String> {
    let values = match document.get(name) {
        None | Some(Bson::Null) => return Ok(Vec::new()),
        Some(Bson::Array(values)) => values,
        Some(_) => return Err(format!("{name}: expected an array of strings")),
    };
    let value = |value: &Bson| match value {
        Bson::String(value) => Ok(value.clone()),
        _ => Err(format!("{name}: expected an array of strings")),
    };
    values.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{DateTime, doc};

    #[test]
    fn the_least_that_a_row_has_to_say_is_enough() {
        let row = read(&doc! { "_id": "a", "topic": "t", "payload": { "n": 1 } }).expect("a row");
        assert_eq!((row.id.as_str(), row.payload.as_str()), ("a", r#"{"n":1}"#));
        let row =
            read(&doc! { "_id": 7, "topic": "t", "payload": 1, "raw": "1.0" }).expect("a row");
        assert_eq!((row.id.as_str(), row.payload.as_str()), ("7", "1.0"));
        let dated = doc! { "_id": 1, "topic": "t", "payload": 1, "ts": DateTime::from_millis(5) };
        assert_eq!(read(&dated).expect("a row").ts, Some(5));
    }

    #[test]
    fn what_cannot_be_an_event_is_said_in_words() {
        for (bad, word) in [
            (doc! { "_id": 1, "payload": 1 }, "topic"),
            (doc! { "_id": 1, "topic": "t" }, "payload"),
            (doc! { "_id": 1, "topic": 2, "payload": 1 }, "topic"),
            (doc! { "_id": { "a": 1 }, "topic": "t", "payload": 1 }, "id"),
            (
                doc! { "_id": 1, "topic": "t", "payload": 1, "headers": { "a": 1 } },
                "headers",
            ),
            (
                doc! { "_id": 1, "topic": "t", "payload": 1, "tags": "x" },
                "tags",
            ),
            (
                doc! { "_id": 1, "topic": "t", "payload": 1, "ts": -1 },
                "negative",
            ),
        ] {
            let error = read(&bad).expect_err("it is bad");
            assert!(error.contains(word), "{bad}: {error}");
        }
    }
}
