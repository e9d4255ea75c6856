//! A shared log in memory whose faults a test decides: answers that get lost, messages that come twice, an engine that
//! is away, full, purged or edited. Clones are handles on the same log, one for each simulated node.

mod disk;
mod snapshots;

pub use disk::SimulatedDisk;

use crate::{
    AppendError, Bounds, Description, Entry, FollowError, Follower, SharedLog, Snapshots,
    Unavailable,
};
use bytes::Bytes;
use prombus_store::LockExt;
use prombus_store::{Answer, Durability};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

/// How much longer a slow append takes.
const OVERTAKEN: Duration = Duration::from_millis(20);

/// What becomes of one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is stored and acknowledged.
    None,
    /// It is stored, and the answer is lost.
    LostAnswer,
    /// It is lost on its way.
    LostMessage,
    /// It is stored twice, as by a network that repeats.
    Twice,
    /// Its answer is lost and it is stored behind the next message, as from the buffer of a server that comes back.
    Late,
    /// It is refused: the log is full.
    Full,
    /// It is stored and acknowledged so much later that the node's next one overtakes it.
    Slow,
}

/// A handle on a shared log in memory.
#[derive(Debug, Clone)]
pub struct SimulatedLog {
    shared: Arc<Shared>,
    description: Description,
    /// Whether this handle reaches the log.
    connected: watch::Receiver<bool>,
}

#[derive(Debug)]
struct Shared {
    log: Mutex<Log>,
    /// Moves whenever something changed that a reader may wait for.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Log {
    /// How many messages were trimmed; the first one that is held is the next.
    trimmed: u64,
    messages: VecDeque<Bytes>,
    /// What happens to the next appends; without any left they succeed.
    faults: VecDeque<Fault>,
    late: Vec<Bytes>,
    is_away: bool,
    delay: Duration,
    /// Chunks of snapshots by their snapshot and number.
    chunks: BTreeMap<(u64, u32), Bytes>,
    /// Chunks that can still be kept before the next ones are refused.
    chunks_left: Option<u32>,
}

impl SimulatedLog {
    /// An empty log.
    pub fn new(log_id: u64) -> Self {
        Self::with_max_message_bytes(log_id, 900 << 10)
    }

    /// An empty log that takes messages of this size.
    pub fn with_max_message_bytes(log_id: u64, max_message_bytes: usize) -> Self {
        let shared = Shared {
            log: Mutex::default(),
            changed: watch::Sender::new(0),
        };
        let description = Description {
            url: format!("simulated:{log_id}"),
            durability: "in memory only, gone when the process ends".into(),
            warning: None,
            log_id,
            max_message_bytes,
            max_in_flight: 2,
        };
        let (_, connected) = watch::channel(true);
        Self {
            shared: Arc::new(shared),
            description,
            connected,
        }
    }

    /// The same log, to which a node makes so many appends at a time.
    pub fn with_max_in_flight(mut self, max_in_flight: usize) -> Self {
        self.description.max_in_flight = max_in_flight;
        self
    }

    /// A handle that can be cut off from the log, as a node whose network is down or whose process is stopped: whatever it
    /// asks is answered when it is connected again.
    pub fn cuttable(&self) -> (Self, watch::Sender<bool>) {
        let (connection, connected) = watch::channel(true);
        let handle = Self {
            connected,
            ..self.clone()
        };
        (handle, connection)
    }

    async fn reach(&self) {
        let mut connected = self.connected.clone();
        // The sender is gone where nobody can cut it.
        let _ = connected.wait_for(|connected| *connected).await;
    }

    /// Decides what happens to the next appends, whoever makes them, behind what was decided before.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.log().faults.extend(faults);
    }

    /// Makes the log unreachable, or reachable again.
    pub fn set_away(&self, is_away: bool) {
        self.log().is_away = is_away;
        self.notify();
    }

    /// Lets every append take so long.
    pub fn set_delay(&self, delay: Duration) {
        self.log().delay = delay;
    }

    /// All messages that are held, as anyone could read them.
    pub fn entries(&self) -> Vec<Entry> {
        let log = self.log();
        let entry = |(at, message): (usize, &Bytes)| Entry {
            position: log.trimmed + 1 + at as u64,
            message: message.clone(),
        };
        log.messages.iter().enumerate().map(entry).collect()
    }

    /// Appends anything at all, as a stranger would who may write to the log.
    pub fn inject(&self, message: Bytes) {
        self.log().messages.push_back(message);
        self.notify();
    }

    /// Replaces a message, as somebody who edits the engine's data would.
    pub fn edit(&self, position: u64, message: Bytes) {
        let mut log = self.log();
        let at = (position - log.trimmed - 1) as usize;
        if let Some(held) = log.messages.get_mut(at) {
            *held = message;
        }
    }

    /// Refuses chunks of snapshots after so many more, or takes them again.
    pub fn set_chunks_left(&self, left: Option<u32>) {
        self.log().chunks_left = left;
    }

    /// Changes what is kept of snapshots, as somebody who edits the engine's data would.
    pub fn edit_chunks(&self, edit: impl FnOnce(&mut BTreeMap<(u64, u32), Bytes>)) {
        edit(&mut self.log().chunks);
    }

    /// Loses the newest messages, as an engine that acknowledged what it had not synced.
    pub fn lose_behind(&self, last: u64) {
        let mut log = self.log();
        let keep = last.saturating_sub(log.trimmed) as usize;
        log.messages.truncate(keep);
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.shared.log.guard()
    }

    fn notify(&self) {
        self.shared.changed.send_modify(|changes| *changes += 1);
    }

    /// What happens to an append that reaches the log now.
    fn next_fault(&self) -> Fault {
        let mut log = self.log();
        let planned = if log.is_away {
            None
        } else {
            log.faults.pop_front()
        };
        planned.unwrap_or(Fault::None)
    }

    fn append_now(&self, message: Bytes, fault: Fault) -> Result<u64, AppendError> {
        let unknown = |cause: &str| AppendError::Unknown {
            cause: cause.into(),
        };
        let mut log = self.log();
        if log.is_away {
            return Err(unknown("the simulated log is away"));
        }
        match fault {
            Fault::Full => {
                let cause = "the simulated log is full".into();
                return Err(AppendError::Rejected { cause });
            }
            Fault::LostMessage => return Err(unknown("the message was lost")),
            Fault::Late => {
                log.late.push(message);
                return Err(unknown("no answer"));
            }
            Fault::None | Fault::LostAnswer | Fault::Slow => log.messages.push_back(message),
            Fault::Twice => {
                log.messages.push_back(message.clone());
                log.messages.push_back(message);
            }
        }
        let copies = 1 + u64::from(fault == Fault::Twice);
        let position = log.trimmed + log.messages.len() as u64 + 1 - copies;
        let late = std::mem::take(&mut log.late);
        log.messages.extend(late);
        drop(log);
        self.notify();
        match fault {
            Fault::LostAnswer => Err(unknown("the answer was lost")),
            _ => Ok(position),
        }
    }

    /// The message behind `after`, if it is there.
    fn read(&self, after: u64) -> Result<Option<Entry>, FollowError> {
        let log = self.log();
        let (first, last) = (log.trimmed + 1, log.trimmed + log.messages.len() as u64);
        if log.is_away {
            return Ok(None);
        }
        if after + 1 < first {
            let wanted = after + 1;
            return Err(FollowError::Trimmed { wanted, first });
        }
        if after > last {
            let applied = after;
            return Err(FollowError::Behind { applied, last });
        }
        let message = log.messages.get((after + 1 - first) as usize);
        Ok(message.map(|message| Entry {
            position: after + 1,
            message: message.clone(),
        }))
    }
}

impl SharedLog for SimulatedLog {
    fn append(&self, message: Bytes, _: Durability) -> Answer<u64, AppendError> {
        let log = self.clone();
        Box::pin(async move {
            log.reach().await;
            let fault = log.next_fault();
            let mut delay = log.log().delay;
            if fault == Fault::Slow {
                delay += OVERTAKEN;
            }
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            log.append_now(message, fault)
        })
    }

    fn follow(&self, after: u64) -> Follower {
        let log = self.clone();
        let mut changed = self.shared.changed.subscribe();
        Follower::spawn(move |sender| async move {
            let mut after = after;
            loop {
                log.reach().await;
                changed.borrow_and_update();
                match log.read(after) {
                    Ok(Some(entry)) => {
                        after = entry.position;
                        if sender.send(Ok(entry)).await.is_err() {
                            return;
                        }
                    }
                    Ok(None) => tokio::select! {
                        _ = changed.changed() => {}
                        () = sender.closed() => return,
                    },
                    Err(error) => {
                        // Nobody has to hear of it any more.
                        let _ = sender.send(Err(error)).await;
                        return;
                    }
                }
            }
        })
    }

    fn bounds(&self) -> Answer<Bounds, Unavailable> {
        let log = self.clone();
        Box::pin(async move {
            log.reach().await;
            let log = log.log();
            if log.is_away {
                Err(away())
            } else {
                Ok(Bounds {
                    first: log.trimmed + 1,
                    last: log.trimmed + log.messages.len() as u64,
                })
            }
        })
    }

    fn trim(&self, through: u64) -> Answer<(), Unavailable> {
        let log = self.clone();
        Box::pin(async move {
            log.reach().await;
            let mut log = log.log();
            if log.is_away {
                return Err(away());
            }
            while log.trimmed < through && log.messages.pop_front().is_some() {
                log.trimmed += 1;
            }
            Ok(())
        })
    }

    fn bytes(&self) -> Answer<Option<u64>, Unavailable> {
        let messages = self.log().messages.iter().map(Bytes::len).sum::<usize>();
        Box::pin(std::future::ready(Ok(Some(messages as u64))))
    }

    fn snapshots(&self) -> Option<Arc<dyn Snapshots>> {
        Some(Arc::new(self.clone()))
    }

    fn description(&self) -> &Description {
        &self.description
    }
}

fn away() -> Unavailable {
    Unavailable {
        cause: "the simulated log is away".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn append(log: &SimulatedLog, text: &'static str) -> Result<u64, AppendError> {
        log.append(Bytes::from_static(text.as_bytes()), Durability::Fsync)
            .await
    }

    #[tokio::test]
    async fn faults_do_what_they_say() {
        let log = SimulatedLog::new(1);
        log.plan([
            Fault::None,
            Fault::LostAnswer,
            Fault::LostMessage,
            Fault::Twice,
            Fault::Late,
            Fault::None,
            Fault::Full,
        ]);
        let mut answers = Vec::new();
        for text in ["a", "b", "c", "d", "e", "f", "g"] {
            answers.push(append(&log, text).await.ok());
        }
        let expected = [Some(1), None, None, Some(3), None, Some(5), None];
        assert_eq!(answers, expected);
        let mut follower = log.follow(0);
        let mut text = String::new();
        for _ in 0..6 {
            let entry = follower.next().await.expect("open").expect("a message");
            text.push_str(std::str::from_utf8(&entry.message).expect("text"));
        }
        assert_eq!(text, "abddfe");
    }

    #[tokio::test]
    async fn what_is_trimmed_or_lost_ends_a_follower() {
        let log = SimulatedLog::new(1);
        for text in ["a", "b", "c"] {
            append(&log, text).await.expect("appended");
        }
        log.trim(2).await.expect("trimmed");
        assert_eq!(log.bounds().await, Ok(Bounds { first: 3, last: 3 }));
        let error = log.follow(1).next().await.expect("an end");
        assert_eq!(
            error,
            Err(FollowError::Trimmed {
                wanted: 2,
                first: 3
            })
        );
        let error = log.follow(7).next().await.expect("an end");
        assert_eq!(
            error,
            Err(FollowError::Behind {
                applied: 7,
                last: 3
            })
        );
    }
}
