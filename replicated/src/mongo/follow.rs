//! Following: pages of messages as they come, woken by a change stream where the server has one.

use super::{Shared, number, signed};
use crate::{Entry, FollowError};
use bytes::Bytes;
use mongodb::bson::{Bson, Document, doc};
use mongodb::change_stream::ChangeStream;
use mongodb::error::Error;
use mongodb::options::ReadConcern;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

/// The most messages that are read at a time.
const PAGE_MESSAGES: i64 = 64;
/// How often the log is looked at where there is no change stream.
const POLL: Duration = Duration::from_millis(20);
/// How often it is looked at beside a change stream, which may have broken.
const POLL_WITH_STREAM: Duration = Duration::from_millis(500);
/// How long the server waits for a change before it says that there is none.
const STREAM_AWAIT: Duration = Duration::from_secs(1);
/// How long a server is left alone that is away.
const RETRY: Duration = Duration::from_millis(250);
/// How often in a row a hole may be seen, or an end before what was read, before it counts.
const MAX_DOUBTS: u32 = 20;

/// What a look at the log gave.
enum Look {
    /// Messages, one after the other.
    Entries(Vec<Entry>),
    /// Something that should not be, and may be a matter of a moment.
    Doubt(FollowError),
    /// What mends itself no more.
    End(FollowError),
}

type Outbox = Sender<Result<Entry, FollowError>>;

/// Reads until the receiver is gone, or what comes next is.
pub(super) async fn follow(shared: Arc<Shared>, after: u64, sender: Outbox) {
    let mut after = after;
    let mut doubts = 0;
    // Ends with this function.
    let mut watching = JoinSet::new();
    let poll = if shared.has_change_streams {
        POLL_WITH_STREAM
    } else {
        POLL
    };
    if shared.has_change_streams {
        watching.spawn(watch(shared.clone()));
    }
    loop {
        let look = shared.look(after).await;
        match look {
            Ok(Look::Entries(entries)) if !entries.is_empty() => {
                doubts = 0;
                for entry in entries {
                    after = entry.position;
                    if sender.send(Ok(entry)).await.is_err() {
                        return;
                    }
                }
                continue;
            }
            Ok(Look::Entries(_)) => doubts = 0,
            Ok(Look::Doubt(_)) if doubts < MAX_DOUBTS => doubts += 1,
            Ok(Look::Doubt(error) | Look::End(error)) => {
                // Nobody has to hear of it any more if this fails.
                let _ = sender.send(Err(error)).await;
                return;
            }
            Err(error) => {
                tracing::debug!(error = %error.kind, "following the log in MongoDB was interrupted");
                tokio::time::sleep(RETRY).await;
            }
        }
        tokio::select! {
            () = shared.appended.notified() => {}
            () = tokio::time::sleep(poll) => {}
            () = sender.closed() => return,
        }
    }
}

impl Shared {
    /// The messages behind `after`.
    async fn look(&self, after: u64) -> Result<Look, Error> {
        let find = self.commits.find(doc! { "_id": { "$gt": signed(after) } });
        let find = find.sort(doc! { "_id": 1 }).limit(PAGE_MESSAGES);
        let find = find.projection(doc! { "b": 1 });
        let mut cursor = find.read_concern(ReadConcern::majority()).await?;
        let mut entries = Vec::new();
        let mut wanted = after + 1;
        while cursor.advance().await? {
            let document: Document = cursor.deserialize_current()?;
            let position = number(&document, "_id");
            if position != wanted {
                if entries.is_empty() {
                    return self.explain(wanted).await;
                }
                break;
            }
            let Some(Bson::Binary(content)) = document.get("b") else {
                let cause = "the document has no bytes".into();
                return Ok(Look::End(FollowError::Missing { position, cause }));
            };
            let message = Bytes::copy_from_slice(&content.bytes);
            entries.push(Entry { position, message });
            wanted += 1;
        }
        if entries.is_empty() {
            self.explain(wanted).await
        } else {
            Ok(Look::Entries(entries))
        }
    }

    /// Why there is no message at `wanted`.
    async fn explain(&self, wanted: u64) -> Result<Look, Error> {
        let bounds = self.bounds().await?;
        Ok(if wanted < bounds.first {
            let first = bounds.first;
            Look::End(FollowError::Trimmed { wanted, first })
        } else if bounds.last + 1 == wanted {
            Look::Entries(Vec::new())
        } else if bounds.last < wanted {
            let (applied, last) = (wanted - 1, bounds.last);
            Look::Doubt(FollowError::Behind { applied, last })
        } else {
            // Not with the majority yet, or gone.
            let cause = format!("the log goes on to {}", bounds.last).into();
            let position = wanted;
            Look::Doubt(FollowError::Missing { position, cause })
        })
    }
}

/// Watches for inserts and wakes the follower; what it missed while it was not watching the poll finds.
async fn watch(shared: Arc<Shared>) {
    loop {
        let mut stream = match shared.open_stream().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(error = %error.kind, "no change stream, polling");
                tokio::time::sleep(POLL_WITH_STREAM).await;
                continue;
            }
        };
        // Something may have come before the stream was open.
        shared.appended.notify_one();
        while let Ok(changed) = stream.next_if_any().await {
            if changed.is_some() {
                shared.appended.notify_one();
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

impl Shared {
    async fn open_stream(&self) -> Result<ChangeStream<Document>, Error> {
        // Only that something was inserted counts; the bytes come with the next look.
        let pipeline = [doc! { "$project": { "_id": 1 } }];
        let watch = self.commits.watch().pipeline(pipeline);
        Ok(watch.max_await_time(STREAM_AWAIT).await?.with_type())
    }
}
