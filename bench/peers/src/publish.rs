//! How rows publish: as fast as it goes with so many in flight, one at a time, or on a schedule.

use super::payload::Payload;
use super::systems::Publisher;
use crate::Outcome;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// What waits for a publisher that has fallen behind its schedule.
const MAX_OVERDUE: usize = 1 << 20;

/// At least so many chunks make up what is in flight.
const CHUNKS_IN_FLIGHT: usize = 4;

/// The numbers that are published: the whole, or every so-manieth where several publish at once.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    pub(crate) next: u64,
    pub(crate) step: u64,
    pub(crate) end: End,
}

/// When there are no more.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// Below this number.
    Before(u64),
    /// At this moment.
    At(Instant),
    /// When this is set.
    Told(Arc<AtomicBool>),
}

impl Numbers {
    /// The numbers from 0 to below `count`.
    pub(crate) fn up_to(count: u64) -> Self {
        Self {
            next: 0,
            step: 1,
            end: End::Before(count),
        }
    }

    /// The numbers from 0 on for a while.
    pub(crate) fn during(time: Duration) -> Self {
        Self {
            next: 0,
            step: 1,
            end: End::At(Instant::now() + time),
        }
    }

    /// Sets as many payloads as there are numbers left, at most `count`.
    fn fill(&mut self, payloads: &mut Vec<Payload>, count: usize) {
        let count = match &self.end {
            End::Before(end) => {
                let left = end.saturating_sub(self.next).div_ceil(self.step);
                count.min(usize::try_from(left).unwrap_or(usize::MAX))
            }
            End::At(end) if Instant::now() >= *end => 0,
            End::Told(is_over) if is_over.load(Ordering::Relaxed) => 0,
            End::At(_) | End::Told(_) => count,
        };
        payloads.resize_with(count, || Payload::new(0, 0));
        for payload in payloads {
            payload.set(self.next, 0);
            self.next += self.step;
        }
    }
}

/// Publishes with up to `window` events in flight, and waits for every acknowledgement. Says how many there were.
pub(crate) async fn publish(
    publisher: &mut dyn Publisher,
    mut numbers: Numbers,
    window: usize,
) -> Outcome<u64> {
    // Several chunks are under way, so that the server has one while another is answered.
    let chunk = publisher.chunk().min(window / CHUNKS_IN_FLIGHT).max(1);
    let (mut payloads, mut waiting) = (Vec::with_capacity(chunk), VecDeque::new());
    let (mut in_flight, mut sent) = (0, 0);
    loop {
        let is_room = in_flight + chunk <= window;
        if is_room {
            numbers.fill(&mut payloads, chunk);
            if !payloads.is_empty() {
                waiting.push_back((publisher.send(&payloads).await?, payloads.len()));
                in_flight += payloads.len();
                sent += payloads.len() as u64;
                continue;
            }
        }
        let Some((answers, count)) = waiting.pop_front() else {
            return Ok(sent);
        };
        answers.await?;
        in_flight -= count;
    }
}

/// Publishes one at a time for a while; how long each took, in milliseconds.
pub(crate) async fn publish_singly(
    publisher: &mut dyn Publisher,
    time: Duration,
) -> Outcome<Vec<f64>> {
    let mut numbers = Numbers::during(time);
    let (mut payloads, mut millis) = (Vec::new(), Vec::new());
    loop {
        numbers.fill(&mut payloads, 1);
        if payloads.is_empty() {
            return Ok(millis);
        }
        let begun = Instant::now();
        publisher.send(&payloads).await?.await?;
        millis.push(begun.elapsed().as_secs_f64() * 1e3);
    }
}

/// Publishes `count` events, so many a second, each with the moment in it at which it is due, counted from `started`.
/// A late one does not make the next one late.
pub(crate) async fn publish_on_schedule(
    publisher: &mut dyn Publisher,
    started: Instant,
    per_second: u64,
    count: u64,
) -> Outcome<()> {
    let (due, mut dues) = mpsc::channel(MAX_OVERDUE);
    // A thread sleeps far more exactly than the timers of a runtime.
    std::thread::spawn(move || {
        let pause = Duration::from_nanos(1_000_000_000 / per_second);
        let mut at = Instant::now() + pause;
        for number in 0..count {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            let due_ns = at.saturating_duration_since(started).as_nanos() as u64;
            if due.blocking_send(Payload::new(number, due_ns)).is_err() {
                return;
            }
            at += pause;
        }
    });
    let (mut answers, mut payloads) = (FuturesUnordered::new(), Vec::new());
    let mut is_over = false;
    while !is_over || !answers.is_empty() {
        tokio::select! {
            payload = dues.recv(), if !is_over => match payload {
                None => is_over = true,
                Some(payload) => {
                    payloads.clear();
                    payloads.push(payload);
                    while let Ok(payload) = dues.try_recv() {
                        payloads.push(payload);
                    }
                    let answer = publisher.send(&payloads).await?;
                    answers.push(answer);
                }
            },
            Some(answer) = answers.next(), if !answers.is_empty() => answer?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::Pending;

    /// Takes note of what is sent at a time.
    struct Noting {
        chunk: usize,
        sent: Vec<usize>,
    }

    impl Publisher for Noting {
        fn chunk(&self) -> usize {
            self.chunk
        }

        fn send<'a>(&'a mut self, payloads: &'a [Payload]) -> Pending<'a, Pending<'static, ()>> {
            self.sent.push(payloads.len());
            let answer: Pending<'static, ()> = Box::pin(async { Ok(()) });
            Box::pin(async { Ok(answer) })
        }
    }

    #[tokio::test]
    async fn every_number_is_sent_once_in_chunks() {
        let mut publisher = Noting {
            chunk: 4,
            sent: Vec::new(),
        };
        let sent = publish(&mut publisher, Numbers::up_to(10), 16)
            .await
            .unwrap();
        assert_eq!((sent, publisher.sent), (10, vec![4, 4, 2]));
    }

    #[test]
    fn publishers_share_the_numbers() {
        let mut numbers = Numbers {
            next: 1,
            step: 3,
            end: End::Before(8),
        };
        let mut payloads = Vec::new();
        numbers.fill(&mut payloads, 10);
        let expected: Vec<String> = [1, 4, 7]
            .iter()
            .map(|number| Payload::new(*number, 0).as_str().to_owned())
            .collect();
        let found: Vec<&str> = payloads.iter().map(Payload::as_str).collect();
        assert_eq!(found, expected);
    }
}
