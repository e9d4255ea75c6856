//! What a connection does by the clock: pings, acknowledgements that have waited long enough, a fresh token.

use crate::options::ClientOptions;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The timers of a connection.
pub(super) struct Timers {
    keep_alive: Timer,
    ack_linger: Timer,
    refresh: Timer,
    keep_alive_pause: Duration,
    ack_linger_pause: Duration,
    /// Whether something came from the server since the last look.
    pub(super) has_received: bool,
    is_ping_open: bool,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Ping,
    /// The server has been silent for too long.
    Dead,
    Acks,
    Token,
}

impl Timers {
    pub(super) fn new(options: &ClientOptions, refresh_after: Option<Duration>) -> Self {
        let mut timers = Self {
            keep_alive: Timer::default(),
            ack_linger: Timer::default(),
            refresh: Timer::default(),
            keep_alive_pause: options.keep_alive,
            ack_linger_pause: options.ack_linger,
            has_received: true,
            is_ping_open: false,
        };
        timers.keep_alive.set(options.keep_alive);
        timers.refresh_after(refresh_after);
        timers
    }

    /// The token should be replaced after this long.
    pub(super) fn refresh_after(&mut self, pause: Option<Duration>) {
        if let Some(pause) = pause {
            self.refresh.set(pause);
        }
    }

    /// Acknowledgements wait for others.
    pub(super) fn linger(&mut self) {
        if !self.ack_linger.is_set {
            self.ack_linger.set(self.ack_linger_pause);
        }
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Due> {
        if self.ack_linger.poll(context).is_ready() {
            return Poll::Ready(Due::Acks);
        }
        if self.refresh.poll(context).is_ready() {
            return Poll::Ready(Due::Token);
        }
        while self.keep_alive.poll(context).is_ready() {
            self.keep_alive.set(self.keep_alive_pause);
            if std::mem::take(&mut self.has_received) {
                self.is_ping_open = false;
            } else if self.is_ping_open {
                return Poll::Ready(Due::Dead);
            } else {
                self.is_ping_open = true;
                return Poll::Ready(Due::Ping);
            }
        }
        Poll::Pending
    }
}

/// A timer that is used again and again.
#[derive(Default)]
struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl Timer {
    fn set(&mut self, pause: Duration) {
        self.is_set = true;
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(Instant::now() + pause),
            None => self.sleep = Some(Box::pin(sleep(pause))),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_set
            && let Some(sleep) = &mut self.sleep
            && sleep.as_mut().poll(context).is_ready()
        {
            self.is_set = false;
            return Poll::Ready(());
        }
        Poll::Pending
    }
}
