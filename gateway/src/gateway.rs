//! The state that all connections of a server share: bus, authenticator, limits, metrics, and whether it drains.

use crate::api_error::ApiError;
use crate::auth::Authenticator;
use crate::error_log::{ErrorLog, ErrorSource};
use crate::header_index::HeaderIndexes;
use crate::history::History;
use crate::http::PullConsumers;
use crate::in_flight::Now;
use crate::limits::{LimitsConfig, Rate, TopicLimits};
use crate::metrics::Metrics;
use crate::throttled::Throttled;
use prombus::error::InvalidPattern;
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
    /// Headers that `/find` looks up, by topic pattern: the first that matches.
    pub index_headers: Vec<(String, Vec<String>)>,
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
    /// How long connections get to wind down once the server begins to drain.
    pub drain_timeout_ms: u64,
    /// Where spans of events that are part of a trace go.
    #[cfg(feature = "otlp")]
    pub spans: Option<crate::spans::Spans>,
}

/// The shared state of a server.
pub struct Gateway {
    pub(crate) bus: Bus,
    pub(crate) auth: Authenticator,
    pub(crate) options: GatewayOptions,
    pub(crate) topic_limits: TopicLimits,
    pub(crate) metrics: Metrics,
    pub(crate) history: History,
    pub(crate) started_ms: u64,
    /// The groups that are pulled over HTTP.
    pub(crate) pull_consumers: PullConsumers,
    pub(crate) throttled: Throttled,
    pub(crate) header_indexes: HeaderIndexes,
    error_log: ErrorLog,
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
            index_headers: Vec::new(),
            cors_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            max_connections: 10_000,
            ping_interval_ms: 20_000,
            pong_timeout_ms: 20_000,
            request_timeout_ms: 30_000,
            drain_timeout_ms: 10_000,
            #[cfg(feature = "otlp")]
            spans: None,
        }
    }
}

impl Gateway {
    /// A gateway for a bus. It serves nothing until a [`Server`](crate::Server) is started on it.
    pub fn new(
        bus: Bus,
        auth: Authenticator,
        options: GatewayOptions,
    ) -> Result<Arc<Self>, InvalidPattern> {
        let rates = options
            .topic_rates
            .iter()
            .map(|(pattern, rate)| Ok((Pattern::for_topics(pattern)?, *rate)))
            .collect::<Result<_, InvalidPattern>>()?;
        let headers = options
            .index_headers
            .iter()
            .map(|(pattern, headers)| Ok((Pattern::for_topics(pattern)?, headers.clone())))
            .collect::<Result<_, InvalidPattern>>()?;
        Ok(Arc::new(Self {
            bus,
            auth,
            topic_limits: TopicLimits::new(options.limits.topic_publish, rates),
            #[cfg(feature = "otlp")]
            metrics: Metrics::new().with_spans(options.spans.clone()),
            #[cfg(not(feature = "otlp"))]
            metrics: Metrics::new(),
            history: History::default(),
            started_ms: options.clock.now_ms(),
            pull_consumers: PullConsumers::default(),
            throttled: Throttled::default(),
            header_indexes: HeaderIndexes::new(headers),
            error_log: ErrorLog::default(),
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

    /// Begins a graceful shutdown: connections finish what they have begun and take nothing new.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Whether the server is shutting down.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Resolves when the server begins to drain.
    pub(crate) async fn drained(&self) {
        let mut draining = self.draining.subscribe();
        // The sender lives in here, so it cannot be gone.
        let _ = draining.wait_for(|draining| *draining).await;
    }

    /// Logs an error if operators should know of it.
    pub(crate) fn log_error(&self, error: &ApiError, source: &ErrorSource<'_>) {
        self.error_log.record(error, source, self.monotonic_ms());
    }

    pub(crate) fn now(&self) -> Now {
        Now {
            wall_ms: self.now_ms(),
            monotonic_ms: self.monotonic_ms(),
        }
    }

    /// What people read and tokens expire by. It may step.
    pub(crate) fn now_ms(&self) -> u64 {
        self.options.clock.now_ms()
    }

    /// What limits and deadlines are measured with: it never steps.
    pub(crate) fn monotonic_ms(&self) -> u64 {
        self.options.clock.monotonic_ms()
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}
