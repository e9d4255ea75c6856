//! What all connections of one server share: the bus, who may do what, how fast, what is counted, and whether the
//! server is on its way down.

use crate::auth::Authenticator;
use crate::complaints::Complaints;
use crate::denied::Denied;
use crate::http::Pullers;
use crate::limits::{LimitsConfig, Rate, TopicLimits};
use crate::metrics::Metrics;
use crate::slowed::Slowed;
use prombus::error::BadPattern;
use prombus::{Bus, Clock, Pattern, SystemClock};
use std::fmt;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// How a gateway is set up.
#[derive(Clone)]
pub struct GatewayOptions {
    /// Where the time comes from; the same clock as the bus's.
    pub clock: Arc<dyn Clock>,
    /// How large messages may be and how fast they may come.
    pub limits: LimitsConfig,
    /// How fast publishing to topics may be: the first pattern that matches wins over `limits.topic_publish`.
    pub topic_rates: Vec<(String, Rate)>,
    /// Which web pages of other origins may call: none, named ones, or `*`.
    pub cors_origins: Vec<String>,
    /// Host names that a server without authentication answers to on the loopback interface, beside loopback names.
    pub allowed_hosts: Vec<String>,
    /// The most connections at a time. More wait to be accepted.
    pub max_connections: usize,
    /// A socket that was silent this long is pinged.
    pub ping_interval_ms: u64,
    /// A ping that is not answered within this time closes the socket.
    pub pong_timeout_ms: u64,
    /// A request's head has to arrive within this time, and its body may not pause for longer.
    pub request_timeout_ms: u64,
    /// How long connections get to wind down once the server is told to stop.
    pub drain_timeout_ms: u64,
}

/// The shared inside of a server. Cloning the `Arc` around it is how connections get at it.
pub struct Gateway {
    pub(crate) bus: Bus,
    pub(crate) auth: Authenticator,
    pub(crate) options: GatewayOptions,
    pub(crate) topic_limits: TopicLimits,
    pub(crate) metrics: Metrics,
    /// The groups that are pulled over HTTP.
    pub(crate) pullers: Pullers,
    pub(crate) slowed: Slowed,
    complaints: Complaints,
    /// One permit for each connection that may be open.
    pub(crate) connections: Arc<Semaphore>,
    draining: watch::Sender<bool>,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            limits: LimitsConfig::default(),
            topic_rates: Vec::new(),
            cors_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            max_connections: 10_000,
            ping_interval_ms: 20_000,
            pong_timeout_ms: 20_000,
            request_timeout_ms: 30_000,
            drain_timeout_ms: 10_000,
        }
    }
}

impl Gateway {
    /// Puts a bus behind a gateway. It serves nobody until a [`Server`](crate::Server) is started on it.
    pub fn new(
        bus: Bus,
        auth: Authenticator,
        options: GatewayOptions,
    ) -> Result<Arc<Self>, BadPattern> {
        let rates = options
            .topic_rates
            .iter()
            .map(|(pattern, rate)| Ok((Pattern::for_topics(pattern)?, *rate)))
            .collect::<Result<_, BadPattern>>()?;
        Ok(Arc::new(Self {
            bus,
            auth,
            topic_limits: TopicLimits::new(options.limits.topic_publish, rates),
            metrics: Metrics::new(),
            pullers: Pullers::default(),
            slowed: Slowed::default(),
            complaints: Complaints::default(),
            connections: Arc::new(Semaphore::new(options.max_connections)),
            draining: watch::Sender::new(false),
            options,
        }))
    }

    /// The bus behind it.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Tells every connection to finish what it has begun and to take nothing new.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Whether the server is on its way down.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Resolves when the server is told to stop.
    pub(crate) async fn told_to_stop(&self) {
        let mut draining = self.draining.subscribe();
        // The sender lives in here, so it cannot be gone.
        let _ = draining.wait_for(|draining| *draining).await;
    }

    /// Tells operators of a refusal, if it is one for them.
    pub(crate) fn note(&self, why: &Denied) {
        self.complaints.note(why, self.now_ms());
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.options.clock.now_ms()
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}
