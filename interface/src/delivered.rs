//! What a handler's loop has to know of a subscription and of what it brings.

use crate::settle::SettleOp;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;

/// A stream of deliveries that several workers may take from.
pub trait Subscribed: Send + Sync + Sized + 'static {
    /// What it brings.
    type Delivery: Delivered;
    /// A handle to it that can be given to others.
    type Control: fmt::Debug + Send + Sync + 'static;
    /// Why no more deliveries come.
    type Ended;

    /// The next delivery; `None` when no more will come. Letting go of the future loses nothing.
    fn next(&self) -> impl Future<Output = Option<Self::Delivery>> + Send;

    /// A handle for others.
    fn control(&self) -> Self::Control;

    /// Why no more deliveries come, where that is so.
    fn ended(&self) -> Option<Self::Ended>;

    /// Ends it, and waits until its leases are free.
    fn unsubscribe(self) -> impl Future<Output = ()> + Send;
}

/// A delivered event.
pub trait Delivered: Send + 'static {
    /// What settles it while a handler has it.
    type Lease: Lease;
    /// Why a payload is not the value that it should be.
    type ValueError: fmt::Display;

    /// Its lease.
    fn lease(&self) -> Self::Lease;

    /// How long the lease was when it was given.
    fn lease_ms(&self) -> u64;

    /// The event's topic.
    fn topic(&self) -> &str;

    /// The event's id.
    fn id(&self) -> Cow<'_, str>;

    /// The payload as a value.
    fn value<T: DeserializeOwned>(&self) -> Result<T, Self::ValueError>;
}

/// The right to settle a delivery that somebody else has.
pub trait Lease: Send + Sync + 'static {
    /// Settles it, or extends the lease, without waiting for the result.
    fn settle(&self, op: SettleOp);
}
