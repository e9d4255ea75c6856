//! Locks whose poisoning does not count. Every critical section of the stores leaves its data consistent before
//! anything in it can panic, so a thread that panicked under a lock leaves nothing half done behind.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Takes a mutex also after a thread has panicked while it held it.
pub trait LockExt<T: ?Sized> {
    /// Waits for exclusive access.
    fn guard(&self) -> MutexGuard<'_, T>;
}

/// The same for locks that many may read at once.
pub trait RwLockExt<T: ?Sized> {
    /// Waits for shared access.
    fn read_guard(&self) -> RwLockReadGuard<'_, T>;

    /// Waits for exclusive access.
    fn write_guard(&self) -> RwLockWriteGuard<'_, T>;
}

impl<T: ?Sized> LockExt<T> for Mutex<T> {
    fn guard(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLockExt<T> for RwLock<T> {
    fn read_guard(&self) -> RwLockReadGuard<'_, T> {
        self.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_guard(&self) -> RwLockWriteGuard<'_, T> {
        self.write().unwrap_or_else(PoisonError::into_inner)
    }
}
