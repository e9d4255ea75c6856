//! The commits of a node that are under way at a time, in the order of their numbers.
//!
//! Only the first one can be applied next: a message counts if its number is the last one of its boot plus one, so a later
//! one that the log stores before it is void, on every node. It is sent again when it has become the first. So commits
//! keep the order in which they were asked for, whatever is lost, repeated or overtaken on the way.

use crate::flight::{Flight, Sender};
use crate::shared_log::AppendError;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;

/// A commit is begun behind another one only when what waits takes at least this part of it. Else it would be small, and
/// what comes a little later had to wait for it.
const SHARE: usize = 2;

/// Commits under way.
pub(crate) struct Window {
    flights: VecDeque<Flight>,
    limit: usize,
}

impl Window {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            flights: VecDeque::new(),
            limit: limit.max(1),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// How many bytes have to wait for another commit to be begun; `None` where none may be.
    pub(crate) fn wanted_bytes(&self) -> Option<usize> {
        let Some(last) = self.flights.back() else {
            return Some(1);
        };
        let may_begin = self.flights.len() < self.limit && last.lets_others_begin();
        may_begin.then(|| (last.bytes() / SHARE).max(1))
    }

    pub(crate) fn push(&mut self, flight: Flight) {
        self.flights.push_back(flight);
    }

    /// The commit that is to be applied next.
    pub(crate) fn first(&self) -> Option<&Flight> {
        self.flights.front()
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut Flight> {
        self.flights.front_mut()
    }

    pub(crate) fn at_mut(&mut self, at: usize) -> Option<&mut Flight> {
        self.flights.get_mut(at)
    }

    /// The first commit is applied.
    pub(crate) fn pop(&mut self) -> Option<Flight> {
        self.flights.pop_front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flight> {
        self.flights.iter_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }

    /// The number of the last message under way; of the last one that was applied where there is none.
    pub(crate) fn last_number(&self, applied: u64) -> u64 {
        self.flights
            .back()
            .map_or(applied, |last| last.end_number() - 1)
    }

    /// Whether nothing of what is under way is stored or ever will be.
    pub(crate) fn is_rejected(&self) -> bool {
        let is_rejected = |flight: &Flight| flight.rejected.is_some() && !flight.is_uncertain;
        self.flights.iter().all(is_rejected)
    }

    /// Gives all messages other numbers, behind the sender's last one.
    pub(crate) fn number(&mut self, mut sender: Sender) {
        for flight in &mut self.flights {
            flight.number(sender);
            sender.last_number = flight.end_number() - 1;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.flights.clear();
    }

    /// The next answer to an append, and the place of the commit whose append it was.
    pub(crate) async fn answer(&mut self) -> (usize, Result<u64, AppendError>) {
        poll_fn(|context| {
            for (at, flight) in self.flights.iter_mut().enumerate() {
                let Some(append) = &mut flight.append else {
                    continue;
                };
                if let Poll::Ready(answer) = append.as_mut().poll(context) {
                    flight.append = None;
                    return Poll::Ready((at, answer));
                }
            }
            Poll::Pending
        })
        .await
    }
}
