//! Handlers on a server's deliveries whose effects are not repeated; see [`prombus_consume::ExactlyOnce`].

use crate::client::Client;
use crate::error::SubscribeError;
use crate::subscription::{Delivery, SubscribeOptions, Subscription};
use prombus_consume::Dedupe;
use std::fmt;
use std::future::Future;

/// A handler at work whose effects are not repeated. Dropping it stops it at once; what it was doing comes again.
pub type ExactlyOnce = prombus_consume::ExactlyOnce<Subscription>;

impl Client {
    /// Subscribes a handler that is not called again for an event it succeeded on: neither when the acknowledgement was
    /// lost nor when the cursor is set back, as long as the mark is kept. The marks are kept by the caller, best in the
    /// database that the handler writes to; their scope is `<topic>/<group>`.
    ///
    /// What is promised is at-least-once with dedupe: a crash after the handler succeeded and before its event was
    /// marked runs it again. Handlers that cannot bear that write their mark in their own transaction.
    ///
    /// The handler must not settle its delivery itself. Its lease is extended while it runs.
    pub async fn subscribe_exactly_once<H, F, E>(
        &self,
        topic: &str,
        group: &str,
        options: SubscribeOptions,
        dedupe: Dedupe,
        handler: H,
    ) -> Result<ExactlyOnce, SubscribeError>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let names = (topic, group);
        prombus_consume::subscribe_exactly_once(self, names, options, dedupe, handler).await
    }
}
