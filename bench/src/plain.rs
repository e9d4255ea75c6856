//! The plain loops that the log is measured beside: what anyone has to do who wants events checksummed and on disk, or
//! back from there, and nothing else. The bytes are the log's own, made beforehand.

use crate::Outcome;
use crate::log_work::{per_second, topic_at};
use prombus_store::GeneratedId;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// What comes before the JSON in a record of the log.
const HEAD_BYTES: usize = 44;
/// Length and checksum, which the checksum does not cover.
const FRAME_BYTES: usize = 8;
/// How much is read at a time.
const READ_BYTES: usize = 1 << 20;

/// Records of one batch, all equally long.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    record_bytes: usize,
}

impl Records {
    /// One record for each payload, as long as the log's records are in a log of a million events and more.
    pub(crate) fn new(payloads: &[String]) -> Outcome<Self> {
        let mut records = Self {
            bytes: Vec::new(),
            record_bytes: 0,
        };
        records.encode(payloads)?;
        Ok(records)
    }

    /// Spells the records anew, without their checksums.
    fn encode(&mut self, payloads: &[String]) -> Outcome<()> {
        const TS: u64 = 1_750_000_000_000;
        const FIRST_SEQ: u64 = 1_000_000;
        let topic = topic_at(0);
        self.bytes.clear();
        for (payload, seq) in payloads.iter().zip(FIRST_SEQ..) {
            let start = self.bytes.len();
            let made = GeneratedId {
                ms: TS,
                tag: 1,
                seq,
            };
            let id = made.to_id();
            self.bytes.extend_from_slice(&[0; HEAD_BYTES]);
            write!(
                self.bytes,
                r#"{{"id":"{id}","ts":{TS},"topic":"{topic}","seq":{seq},"payload":{payload}}}"#
            )?;
            self.record_bytes = self.bytes.len() - start;
        }
        Ok(())
    }

    /// As many records as given, the same ones over and over.
    pub(crate) fn repeated(&self, count: usize) -> Self {
        let bytes = count * self.record_bytes;
        Self {
            bytes: self.bytes.iter().copied().cycle().take(bytes).collect(),
            record_bytes: self.record_bytes,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.record_bytes
    }

    /// Puts its checksum into each record.
    fn checksum(&mut self) {
        for record in self.bytes.chunks_exact_mut(self.record_bytes) {
            let checksum = xxh3_64(&record[FRAME_BYTES..]) as u32;
            record[4..FRAME_BYTES].copy_from_slice(&checksum.to_le_bytes());
        }
    }
}

/// What appending came to, in events per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Appended {
    /// Until everything was written.
    pub(crate) written: f64,
    /// Until everything was on the disk.
    pub(crate) synced: f64,
}

/// Checksums and writes batches to a new file, and syncs it once at the end.
pub(crate) fn append(path: &Path, records: &Records, batches: u64) -> Outcome<Appended> {
    append_each(path, records, batches, |_| Ok(()))
}

/// The same for one that has no records yet and spells them from the payloads, batch by batch.
pub(crate) fn spell_and_append(
    path: &Path,
    payloads: &[String],
    batches: u64,
) -> Outcome<Appended> {
    let records = Records::new(payloads)?;
    append_each(path, &records, batches, |records| records.encode(payloads))
}

fn append_each(
    path: &Path,
    records: &Records,
    batches: u64,
    prepare: impl Fn(&mut Records) -> Outcome<()>,
) -> Outcome<Appended> {
    let mut records = records.clone();
    let mut file = File::create_new(path)?;
    let events = batches * records.len() as u64;
    let started = Instant::now();
    for _ in 0..batches {
        prepare(&mut records)?;
        records.checksum();
        file.write_all(&records.bytes)?;
    }
    let written = per_second(events, started);
    file.sync_data()?;
    let synced = per_second(events, started);
    Ok(Appended { written, synced })
}

/// Checksums and writes batches to a new file, each one synced; events per second.
pub(crate) fn append_and_sync(path: &Path, records: &Records, batches: u64) -> Outcome<f64> {
    let mut records = records.clone();
    let mut file = File::create_new(path)?;
    let started = Instant::now();
    for _ in 0..batches {
        records.checksum();
        file.write_all(&records.bytes)?;
        file.sync_data()?;
    }
    Ok(per_second(batches * records.len() as u64, started))
}

/// Reads a file that [`append`] has written and compares the checksums; bytes per second.
pub(crate) fn read(path: &Path, records: &Records) -> Outcome<f64> {
    let file = File::open(path)?;
    let file_bytes = file.metadata()?.len();
    let started = Instant::now();
    let step = READ_BYTES / records.record_bytes * records.record_bytes;
    let mut at = 0;
    while at < file_bytes {
        let mut block = vec![0; step.min((file_bytes - at) as usize)];
        file.read_exact_at(&mut block, at)?;
        for record in block.chunks_exact(records.record_bytes) {
            let checksum = xxh3_64(&record[FRAME_BYTES..]) as u32;
            if record[4..FRAME_BYTES] != checksum.to_le_bytes() {
                return Err("the plain file is damaged".into());
            }
        }
        at += block.len() as u64;
    }
    Ok(per_second(file_bytes, started))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_work::{draft, payloads};
    use prombus_store::{Batch, StoredEvent};

    #[test]
    fn what_was_written_is_read_and_damage_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plain");
        let records = Records::new(&payloads()).unwrap();
        assert_eq!(records.len(), 1_000);
        append(&path, &records, 3).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 3 * records.bytes.len());
        read(&path, &records).unwrap();

        let mut damaged = bytes;
        damaged[1_500 * records.record_bytes + HEAD_BYTES] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert!(read(&path, &records).is_err());
    }

    #[test]
    fn records_are_those_of_the_log() {
        let payloads = payloads();
        let topic = topic_at(0);
        let mut batch = Batch::new();
        batch.publish(&topic, &draft(&payloads[0]));
        let event = batch.events().next().unwrap();
        let records = Records::new(&payloads).unwrap();
        let made = GeneratedId {
            ms: 1_750_000_000_000,
            tag: 1,
            seq: 1_000_000,
        };
        let stored = StoredEvent::encode(event, &made.to_id(), made.ms, made.seq);
        assert_eq!(stored.stored_bytes(), records.record_bytes);
        let json = &records.bytes[HEAD_BYTES..records.record_bytes];
        assert_eq!(stored.json_bytes(), json);
    }

    #[test]
    fn records_can_be_repeated() {
        let records = Records::new(&payloads()).unwrap();
        assert_eq!(records.repeated(2_500).len(), 2_500);
        assert_eq!(records.repeated(1_000).bytes, records.bytes);
    }
}
