//! Snapshots beside a simulated log.

use super::{SimulatedLog, away};
use crate::{Snapshots, Unavailable};
use bytes::Bytes;
use prombus_store::Answer;

impl Snapshots for SimulatedLog {
    fn put(&self, snapshot: u64, chunk: u32, bytes: Bytes) -> Answer<(), Unavailable> {
        let log = self.clone();
        Box::pin(async move {
            log.reach().await;
            let delay = log.log().delay;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let mut log = log.log();
            match log.chunks_left {
                _ if log.is_away => return Err(away()),
                Some(0) => return Err(away()),
                Some(left) => log.chunks_left = Some(left - 1),
                None => {}
            }
            log.chunks.insert((snapshot, chunk), bytes);
            Ok(())
        })
    }

    fn get(&self, snapshot: u64, chunk: u32) -> Answer<Option<Bytes>, Unavailable> {
        let log = self.clone();
        Box::pin(async move {
            log.reach().await;
            let delay = log.log().delay;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let log = log.log();
            if log.is_away {
                Err(away())
            } else {
                Ok(log.chunks.get(&(snapshot, chunk)).cloned())
            }
        })
    }

    fn list(&self) -> Answer<Vec<u64>, Unavailable> {
        let log = self.clone();
        Box::pin(async move {
            log.reach().await;
            let log = log.log();
            if log.is_away {
                return Err(away());
            }
            let whole = log.chunks.keys().filter(|(_, chunk)| *chunk == 0);
            Ok(whole.map(|(snapshot, _)| *snapshot).collect())
        })
    }

    fn remove_below(&self, snapshot: u64) -> Answer<(), Unavailable> {
        let log = self.clone();
        Box::pin(async move {
            let mut log = log.log();
            if log.is_away {
                return Err(away());
            }
            log.chunks.retain(|(of, _), _| *of >= snapshot);
            Ok(())
        })
    }
}
