//! What all handles of a client and its connection's task share.

use crate::endpoint::Endpoint;
use crate::error::{ConnectError, PublishError};
use crate::id::IdGenerator;
use crate::options::ClientOptions;
use crate::publish::outbox::{Completed, Outbox};
use crate::subscription::AckPublish;
use crate::subscription::pending_ops::PendingOps;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::{Semaphore, watch};

/// The shared part of a client.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) endpoint: Endpoint,
    pub(crate) options: ClientOptions,
    pub(crate) ids: IdGenerator,
    /// Room for publishes that are not acknowledged, in units of [`ClientOptions::units`].
    pub(crate) room: Arc<Semaphore>,
    /// Confirmed acknowledgements that may be under way.
    pub(crate) confirm_room: Semaphore,
    /// How the task is woken.
    pub(crate) task_waker: TaskWaker,
    outbox: Mutex<Outbox>,
    pending_ops: Mutex<PendingOps>,
    phase: watch::Sender<Phase>,
    next_number: AtomicU64,
}

/// How far the client's life has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// It finishes what it has and takes nothing new.
    Closing,
    Ended(Arc<ConnectError>),
}

/// The most confirmed acknowledgements that are under way at a time.
const MAX_CONFIRMS: usize = 1_024;

impl Core {
    pub(crate) fn new(endpoint: Endpoint, options: ClientOptions, ids: IdGenerator) -> Self {
        let room = Arc::new(Semaphore::new(options.max_units()));
        Self {
            endpoint,
            options,
            ids,
            room,
            confirm_room: Semaphore::new(MAX_CONFIRMS),
            task_waker: TaskWaker::default(),
            outbox: Mutex::default(),
            pending_ops: Mutex::default(),
            phase: watch::Sender::new(Phase::Open),
            next_number: AtomicU64::new(1),
        }
    }

    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pending_ops(&self) -> MutexGuard<'_, PendingOps> {
        self.pending_ops
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an ack-and-publish transaction.
    pub(crate) fn ack_publish(&self, op: AckPublish) {
        op.shared.begin_ack_publish(op.epoch, op.ids.len());
        self.pending_ops().ack_publish(op);
        self.task_waker.wake();
    }

    /// A number that is unique in this client.
    pub(crate) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Gives room back and wakes who waited, with no lock held.
    pub(crate) fn complete(&self, completed: Completed) {
        self.room.add_permits(completed.units);
        completed.wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn watch_phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.phase.borrow() == Phase::Closing
    }

    /// Why the client ended, where it has.
    pub(crate) fn ended(&self) -> Option<Arc<ConnectError>> {
        match &*self.phase.borrow() {
            Phase::Ended(error) => Some(error.clone()),
            Phase::Open | Phase::Closing => None,
        }
    }

    /// Why the client ended, for a caller whose reply never arrived.
    pub(crate) fn end_reason(&self) -> Arc<ConnectError> {
        self.ended()
            .unwrap_or_else(|| Arc::new(ConnectError::Closed))
    }

    /// Asks the task to finish.
    pub(crate) fn begin_close(&self) {
        self.phase.send_if_modified(|phase| {
            let is_open = *phase == Phase::Open;
            if is_open {
                *phase = Phase::Closing;
            }
            is_open
        });
        self.task_waker.wake();
    }

    /// Nothing more will happen. All waiters are notified.
    pub(crate) fn end(&self, error: ConnectError) {
        let error = Arc::new(error);
        let phase = Phase::Ended(error.clone());
        self.phase.send_replace(phase);
        let completed = self.outbox().end(&PublishError::Ended(error.clone()));
        self.room.close();
        self.complete(completed);
        let waiting = self.pending_ops().end();
        for shared in waiting {
            shared.end(crate::Ended::Client(error.clone()));
        }
    }
}

/// How callers wake the connection's task: one wake for each time it went to sleep, however many call.
#[derive(Debug, Default)]
pub(crate) struct TaskWaker {
    is_asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl TaskWaker {
    /// There is something to do.
    pub(crate) fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            let waker = self.waker().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// The task goes to sleep. It has to look for work once more after this.
    pub(crate) fn register(&self, waker: &Waker) {
        *self.waker() = Some(waker.clone());
        self.is_asleep.store(true, Ordering::SeqCst);
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
