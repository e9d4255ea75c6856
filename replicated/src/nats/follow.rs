//! Following the stream: what it republishes as it stores it, and direct gets for what was not heard. An ordered consumer
//! would need half a minute to come back after a server was killed; this comes back with the connection.

use super::request::{Api, sequence_of};
use crate::{Entry, FollowError};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// After so long without a message the stream is asked whether there was one: silence may be loss.
const SILENCE: Duration = Duration::from_millis(500);
/// The pause after a request that failed.
const PAUSE: Duration = Duration::from_millis(100);
/// How many messages are fetched at a time.
const FETCHED_AT_ONCE: u64 = 32;
/// So many times in a row the leader has to say that a message is not there, or that the stream ends before what was
/// read: one that was just elected may not know yet.
const MAX_DENIALS: u32 = 20;

type Sender = mpsc::Sender<Result<Entry, FollowError>>;

struct Follow {
    api: Api,
    sender: Sender,
    /// The sequence that comes next.
    next: u64,
    denials: u32,
}

/// Why following stops.
enum Stop {
    /// Nobody listens any more.
    Closed,
    Error(FollowError),
}

/// Sends every message behind `after`, for as long as somebody listens.
pub(super) async fn run(
    client: Client,
    api: Api,
    live_subject: String,
    after: u64,
    sender: Sender,
) {
    let mut follow = Follow {
        api,
        sender,
        next: after + 1,
        denials: 0,
    };
    loop {
        // Before anything is fetched, so that nothing falls between.
        if let Ok(live) = client.subscribe(live_subject.clone()).await {
            match follow.follow(live).await {
                Ok(()) => {}
                Err(Stop::Closed) => return,
                Err(Stop::Error(error)) => {
                    // Nobody has to hear of it any more.
                    let _ = follow.sender.send(Err(error)).await;
                    return;
                }
            }
        }
        if follow.sender.is_closed() {
            return;
        }
        sleep(PAUSE).await;
    }
}

impl Follow {
    /// Follows until the subscription ends.
    async fn follow(&mut self, mut live: Subscriber) -> Result<(), Stop> {
        let mut is_behind = true;
        loop {
            if is_behind {
                is_behind = !self.catch_up().await?;
                if is_behind {
                    sleep(PAUSE).await;
                    continue;
                }
            }
            match timeout(SILENCE, live.next()).await {
                Ok(Some(message)) => match sequence_of(&message) {
                    Some(sequence) if sequence == self.next => self.send(message.payload).await?,
                    Some(sequence) if sequence < self.next => {}
                    Some(_) => is_behind = true,
                    // Somebody else published to the subject.
                    None => {}
                },
                Ok(None) => return Ok(()),
                Err(_) => is_behind = true,
            }
            if self.sender.is_closed() {
                return Err(Stop::Closed);
            }
        }
    }

    /// Fetches what there is; `false` where that could not be found out.
    async fn catch_up(&mut self) -> Result<bool, Stop> {
        let Ok(bounds) = self.api.bounds().await else {
            return Ok(false);
        };
        if self.next < bounds.first {
            return Err(Stop::Error(FollowError::Trimmed {
                wanted: self.next,
                first: bounds.first,
            }));
        }
        if bounds.last + 1 < self.next {
            return self.denied(FollowError::Behind {
                applied: self.next - 1,
                last: bounds.last,
            });
        }
        while self.next <= bounds.last {
            let until = bounds.last.min(self.next + FETCHED_AT_ONCE - 1);
            if !self.fetch(until).await? {
                return Ok(false);
            }
        }
        self.denials = 0;
        Ok(true)
    }

    /// Fetches the messages up to and with `until`, several at a time; `false` where one did not come.
    async fn fetch(&mut self, until: u64) -> Result<bool, Stop> {
        let get = |sequence: u64| {
            let api = self.api.clone();
            async move { api.get(sequence).await }
        };
        let mut fetched: FuturesOrdered<_> = (self.next..=until).map(get).collect();
        while let Some(message) = fetched.next().await {
            match message {
                Ok(Some(message)) => self.send(message).await?,
                // A replica that is behind, or a message that is gone: the leader knows.
                Ok(None) => return self.ask_leader().await,
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    async fn ask_leader(&mut self) -> Result<bool, Stop> {
        match self.api.leader_has(self.next).await {
            Ok(true) | Err(_) => Ok(false),
            Ok(false) => {
                // It may have been purged since.
                let first = self.api.bounds().await.map_or(0, |bounds| bounds.first);
                if self.next < first {
                    Err(Stop::Error(FollowError::Trimmed {
                        wanted: self.next,
                        first,
                    }))
                } else {
                    self.denied(FollowError::Missing {
                        position: self.next,
                        cause: "its leader does not have it".into(),
                    })
                }
            }
        }
    }

    /// Believes it only when it was said often enough.
    fn denied(&mut self, error: FollowError) -> Result<bool, Stop> {
        self.denials += 1;
        if self.denials >= MAX_DENIALS {
            Err(Stop::Error(error))
        } else {
            Ok(false)
        }
    }

    async fn send(&mut self, message: Bytes) -> Result<(), Stop> {
        let position = self.next;
        let sent = self.sender.send(Ok(Entry { position, message })).await;
        sent.map_err(|_| Stop::Closed)?;
        self.next += 1;
        self.denials = 0;
        Ok(())
    }
}
