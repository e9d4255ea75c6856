//! Many writes as few commands, in or out of a transaction.

use crate::error::MongoError;
use crate::server::durable;
use mongodb::bson::{Bson, Document, doc, serialize_to_bson};
use mongodb::{ClientSession, Database};

/// About the most bytes of one command; a document ends at 16 MiB.
const COMMAND_BYTES: usize = 8 << 20;
/// The most writes of one command; the server allows 100,000.
const COMMAND_WRITES: usize = 10_000;

/// What a command with many writes did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    /// Documents that were found, or made.
    pub(crate) matched: u64,
}

/// Replaces documents by their `_id`, or inserts them.
pub(crate) async fn put(
    database: &Database,
    collection: &str,
    documents: Vec<Document>,
    session: Option<&mut ClientSession>,
) -> Result<(), MongoError> {
    let updates = documents.into_iter().map(|document| {
        let id = document.get("_id").cloned().unwrap_or(Bson::Null);
        doc! { "q": { "_id": id }, "u": document, "upsert": true }
    });
    let head = doc! { "update": collection };
    write(database, head, "updates", updates.collect(), session).await?;
    Ok(())
}

/// Removes what each of these filters finds.
pub(crate) async fn delete(
    database: &Database,
    collection: &str,
    filters: Vec<Document>,
    session: Option<&mut ClientSession>,
) -> Result<(), MongoError> {
    let deletes = filters
        .into_iter()
        .map(|filter| doc! { "q": filter, "limit": 0 });
    let head = doc! { "delete": collection };
    write(database, head, "deletes", deletes.collect(), session).await?;
    Ok(())
}

/// Updates what each of these filters finds first.
pub(crate) async fn update(
    database: &Database,
    collection: &str,
    updates: Vec<(Document, Document)>,
    session: Option<&mut ClientSession>,
) -> Result<Written, MongoError> {
    let updates = updates
        .into_iter()
        .map(|(filter, update)| doc! { "q": filter, "u": update });
    let head = doc! { "update": collection };
    write(database, head, "updates", updates.collect(), session).await
}

/// Sends writes in as many commands as their size asks for.
async fn write(
    database: &Database,
    head: Document,
    name: &str,
    writes: Vec<Document>,
    mut session: Option<&mut ClientSession>,
) -> Result<Written, MongoError> {
    let mut written = Written::default();
    for chunk in chunks(writes)? {
        let mut command = head.clone();
        command.insert(name, chunk);
        command.insert("ordered", true);
        // Inside a transaction it is the commit that is acknowledged.
        if session.is_none() {
            command.insert("writeConcern", concern(database)?);
        }
        let mut action = database.run_command(command);
        if let Some(session) = session.as_deref_mut() {
            action = action.session(session);
        }
        let reply = check(&action.await?)?;
        written.matched += reply.matched;
    }
    Ok(written)
}

/// How a write outside of a transaction is acknowledged.
fn concern(database: &Database) -> Result<Bson, MongoError> {
    let concern = database.write_concern().cloned().unwrap_or_else(durable);
    serialize_to_bson(&concern).map_err(|error| MongoError::Failed {
        code: None,
        why: error.to_string(),
    })
}

/// Splits writes so that each command stays below the limits; a single one may be larger.
fn chunks(writes: Vec<Document>) -> Result<Vec<Vec<Document>>, MongoError> {
    let mut chunks = Vec::new();
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    for write in writes {
        let size = size(&write)?;
        let is_full = bytes + size > COMMAND_BYTES || chunk.len() == COMMAND_WRITES;
        if is_full && !chunk.is_empty() {
            chunks.push(std::mem::take(&mut chunk));
            bytes = 0;
        }
        bytes += size;
        chunk.push(write);
    }
    if !chunk.is_empty() {
        chunks.push(chunk);
    }
    Ok(chunks)
}

/// How many bytes a document takes.
pub(crate) fn size(document: &Document) -> Result<usize, MongoError> {
    let bytes = document.to_vec().map_err(|error| MongoError::Failed {
        code: None,
        why: error.to_string(),
    })?;
    Ok(bytes.len())
}

/// A reply can be fine as a whole though a write in it failed.
fn check(reply: &Document) -> Result<Written, MongoError> {
    let number = |document: &Document, name: &str| match document.get(name) {
        Some(Bson::Int32(number)) => i64::from(*number),
        Some(Bson::Int64(number)) => *number,
        Some(Bson::Double(number)) => *number as i64,
        _ => 0,
    };
    let failed = |error: &Document| {
        let message = error.get_str("errmsg").unwrap_or("a write failed");
        MongoError::of_code(number(error, "code") as i32, message)
    };
    let errors = reply.get_array("writeErrors").ok();
    if let Some(Bson::Document(error)) = errors.and_then(|errors| errors.first()) {
        return Err(failed(error));
    }
    if let Ok(error) = reply.get_document("writeConcernError") {
        let why = failed(error).to_string();
        return Err(MongoError::Transient { why });
    }
    Ok(Written {
        matched: u64::try_from(number(reply, "n")).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stay_below_their_limits() {
        let large = doc! { "text": "x".repeat(3 << 20) };
        let chunks = chunks(vec![large; 5]).expect("sizes");
        let lengths: Vec<usize> = chunks.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 2, 1]);
        let small = vec![doc! { "a": 1 }; COMMAND_WRITES + 1];
        let lengths: Vec<usize> = super::chunks(small)
            .expect("sizes")
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(lengths, [COMMAND_WRITES, 1]);
        let huge = doc! { "text": "x".repeat(9 << 20) };
        assert_eq!(super::chunks(vec![huge; 2]).expect("sizes").len(), 2);
    }

    #[test]
    fn a_failed_write_in_a_good_reply_is_found() {
        assert_eq!(check(&doc! { "ok": 1, "n": 3 }).expect("fine").matched, 3);
        let reply =
            doc! { "ok": 1, "n": 0, "writeErrors": [{ "code": 11000, "errmsg": "E11000" }] };
        assert!(matches!(check(&reply), Err(MongoError::Duplicate { .. })));
        let reply =
            doc! { "ok": 1, "n": 1, "writeConcernError": { "code": 64, "errmsg": "waiting" } };
        assert!(check(&reply).expect_err("not durable").is_transient());
    }
}
