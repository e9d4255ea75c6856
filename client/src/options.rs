//! How a client behaves, with the names of all its limits.

use crate::token::TokenSource;
use std::time::Duration;

/// How a client behaves. The defaults are made for safety: nothing that was published is lost or stored twice when a
/// connection breaks.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Where tokens come from; none by default.
    pub token: TokenSource,
    /// How the server's log names this client.
    pub name: Option<String>,
    /// What happens when the connection breaks.
    pub reconnect: Reconnect,
    /// Whether [`Client::connect`](crate::Client::connect) keeps trying as `reconnect` says when the server cannot be
    /// reached. By default it fails at once, which is what one wants to see while setting things up.
    pub wait_for_server: bool,
    /// Whether a publish without an id gets one here (on by default). If the connection breaks before the answer, the
    /// event is sent again, and the server, which knows the id, does not store it twice. Without it such a publish
    /// ends with [`PublishError::UnknownOutcome`](crate::PublishError::UnknownOutcome), and the bus makes the ids,
    /// which is cheaper for it: it needs no index for them.
    pub idempotent: bool,
    /// The most publishes that are sent and not acknowledged. Beyond it a publish waits for room when it is awaited, and
    /// goes out then.
    pub max_in_flight: usize,
    /// The most bytes of publishes that are sent and not acknowledged. A larger one goes alone.
    pub max_in_flight_bytes: usize,
    /// The largest message that is taken from the server.
    pub max_message_bytes: usize,
    /// Which servers are trusted over TLS, and the certificate of this client.
    pub tls: TlsOptions,
    /// How long connecting, the upgrade and AUTH may take together.
    pub handshake_timeout: Duration,
    /// After how much silence a ping is sent; after twice as much the connection counts as broken.
    pub keep_alive: Duration,
    /// How long an acknowledgement may wait for others to share a frame with. It waits only while the subscription
    /// has more events to hand out.
    pub ack_linger: Duration,
    /// How long [`Client::close`](crate::Client::close) waits for answers.
    pub close_timeout: Duration,
}

/// TLS, for `wss://` and `https://`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Authorities to trust instead of the system's, as PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// The certificate of this client and its private key, as PEM, for servers that ask for one.
    pub identity_pem: Option<(Vec<u8>, Vec<u8>)>,
}

/// Without the private key.
impl std::fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsOptions")
            .field("has_ca", &self.ca_pem.is_some())
            .field("has_identity", &self.identity_pem.is_some())
            .finish()
    }
}

/// What happens when the connection breaks: wait, longer each time and by chance, and try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// The first pause.
    pub base: Duration,
    /// The longest pause.
    pub cap: Duration,
    /// How many attempts in a row may fail before the client ends; `None` tries for ever.
    pub max_attempts: Option<u32>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            token: TokenSource::None,
            name: None,
            reconnect: Reconnect::default(),
            wait_for_server: false,
            idempotent: true,
            max_in_flight: 8_192,
            max_in_flight_bytes: 64 << 20,
            max_message_bytes: 16 << 20,
            tls: TlsOptions::default(),
            handshake_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(20),
            ack_linger: Duration::from_millis(1),
            close_timeout: Duration::from_secs(10),
        }
    }
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(50),
            cap: Duration::from_secs(10),
            max_attempts: None,
        }
    }
}

impl Reconnect {
    /// The pause before attempt number `attempt`, from 1. `chance` is 0 to 1 and spreads clients that lost the same
    /// server over the second half of the pause.
    pub(crate) fn pause(&self, attempt: u32, chance: f64) -> Duration {
        let doubled = self
            .base
            .saturating_mul(1_u32 << attempt.saturating_sub(1).min(20));
        let whole = doubled.min(self.cap);
        whole / 2 + (whole / 2).mul_f64(chance.clamp(0.0, 1.0))
    }
}

impl ClientOptions {
    /// How many units of room a frame of this size takes. Room is counted in one currency for both limits: a unit is
    /// one publish, or as many bytes as each of them has when they share the whole.
    pub(crate) fn units(&self, bytes: usize) -> u32 {
        let unit_bytes = (self.max_in_flight_bytes / self.max_units()).max(1);
        let units = bytes.div_ceil(unit_bytes).clamp(1, self.max_units());
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// How much room there is.
    pub(crate) fn max_units(&self) -> usize {
        self.max_in_flight.clamp(1, MAX_UNITS)
    }
}

/// More publishes under way than this are not counted one by one.
const MAX_UNITS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_cap_and_are_spread() {
        let reconnect = Reconnect::default();
        assert_eq!(reconnect.pause(1, 1.0), Duration::from_millis(50));
        assert_eq!(reconnect.pause(1, 0.0), Duration::from_millis(25));
        assert_eq!(reconnect.pause(3, 1.0), Duration::from_millis(200));
        assert_eq!(reconnect.pause(4_000_000_000, 1.0), Duration::from_secs(10));
        assert_eq!(reconnect.pause(40, 0.0), Duration::from_secs(5));
    }

    #[test]
    fn room_is_shared_by_count_and_bytes() {
        let options = ClientOptions {
            max_in_flight: 100,
            max_in_flight_bytes: 100_000,
            ..ClientOptions::default()
        };
        assert_eq!(options.units(10), 1);
        assert_eq!(options.units(1_000), 1);
        assert_eq!(options.units(1_001), 2);
        assert_eq!(options.units(10_000_000), 100);
    }
}
