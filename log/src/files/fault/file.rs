//! An open file on the lying disk.

use super::super::File;
use super::{Disk, SharedContent, input_output_error, lock};
use prombus_store::conformance::Random;
use std::io;
use std::sync::Arc;

pub(super) struct FaultFile {
    pub(super) disk: Arc<Disk>,
    pub(super) content: SharedContent,
}

impl File for FaultFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let _powered = self.disk.look()?;
        let content = lock(&self.content);
        let rest = content.current().get(place(at)?..).unwrap_or_default();
        let bytes = rest.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&rest[..bytes]);
        Ok(bytes)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let at = place(at)?;
        let mut state = self.disk.change()?;
        let mut result = Ok(());
        let mut written = bytes.len();
        if state.next_write_fails() {
            written = Random::seeded(state.writes).index(bytes.len());
            result = Err(input_output_error());
        }
        let room = state.room();
        let mut content = lock(&self.content);
        let end_of_space = (content.current().len() as u64).saturating_add(room);
        let fitting = end_of_space.saturating_sub(at as u64);
        if fitting < written as u64 {
            written = fitting as usize;
            result = Err(io::ErrorKind::StorageFull.into());
        }
        content.write(&bytes[..written], at);
        result
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.change()?;
        if state.next_sync_fails() {
            lock(&self.content).fail_sync();
            return Err(input_output_error());
        }
        lock(&self.content).sync();
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        let _powered = self.disk.look()?;
        Ok(lock(&self.content).current().len() as u64)
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let state = self.disk.change()?;
        let room = state.room();
        let mut content = lock(&self.content);
        if bytes.saturating_sub(content.current().len() as u64) > room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        content.resize(place(bytes)?);
        Ok(())
    }
}

fn place(at: u64) -> io::Result<usize> {
    usize::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge.into())
}
