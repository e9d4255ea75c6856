//! The disk of a simulated node: the places of a copy's logs in memory, which a test can cut the power of.

use crate::{LogCopy, Place, Shelf};
use prombus_log::fault::FaultFiles;
use prombus_log::{LogOptions, OpenError};
use prombus_store::LockExt;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A handle on the disk of one node. Each opening of its copy stands for one start of the node.
#[derive(Clone, Default)]
pub struct SimulatedDisk {
    places: Arc<Mutex<Places>>,
}

#[derive(Default)]
struct Places {
    made: u64,
    current: Option<String>,
    files: BTreeMap<String, Arc<FaultFiles>>,
}

impl SimulatedDisk {
    /// Opens the copy in it, or makes one. Nothing runs beside the calls, so that a run can be repeated; segments are
    /// sealed at so many bytes.
    pub fn open(&self, log_id: u64, segment_bytes: u64) -> Result<LogCopy, OpenError> {
        let current = {
            let places = self.lock();
            let name = places.current.clone();
            name.and_then(|name| Some((name.clone(), places.files.get(&name)?.clone())))
        };
        let place = match current {
            Some((name, files)) => Place { name, files },
            None => {
                let place = self.fresh()?;
                self.adopt(&place.name)?;
                place
            }
        };
        let options = LogOptions {
            segment_bytes,
            tail_cache_bytes: 1000,
            preallocate_bytes: 0,
            reserve_bytes: 0,
            threads: false,
            ..LogOptions::default()
        };
        let url = "copy:simulated".to_owned();
        let (copy, _) = LogCopy::open(place, Box::new(self.clone()), log_id, options, url)?;
        Ok(copy)
    }

    /// Ends the process that uses the disk; everything it wrote is there.
    pub fn kill(&self) {
        self.end(FaultFiles::process_crash);
    }

    /// Cuts the power: of what was not synced anything may be lost.
    pub fn cut_power(&self, seed: u64) {
        self.end(|files| files.crash(seed));
    }

    fn end(&self, crash: impl Fn(&FaultFiles) -> FaultFiles) {
        let mut places = self.lock();
        let current = places.current.clone();
        places
            .files
            .retain(|name, _| Some(name) == current.as_ref());
        for files in places.files.values_mut() {
            *files = Arc::new(crash(files));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.guard()
    }
}

impl Shelf for SimulatedDisk {
    fn fresh(&self) -> io::Result<Place> {
        let mut places = self.lock();
        places.made += 1;
        let name = places.made.to_string();
        let files = Arc::new(FaultFiles::new());
        places.files.insert(name.clone(), files.clone());
        Ok(Place { name, files })
    }

    fn adopt(&self, place: &str) -> io::Result<()> {
        let mut places = self.lock();
        places.current = Some(place.to_owned());
        places.files.retain(|name, _| name == place);
        Ok(())
    }
}
