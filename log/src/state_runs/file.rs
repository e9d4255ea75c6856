//! One run on disk: 64 bytes of header, then records in the order of their keys, each with its own checksum.
//!
//! ```text
//!  0 magic "PROMSTA\n" | 8 format version u16 | 10 zero u16 | 12 next topic number u32
//! 16 log id u64 | 24 first segment u64 | 32 last segment u64 | 40 records u64 | 48 bytes of the file u64
//! 56 checksum u64 (XXH3-64 of the 56 bytes before)
//! ```

use super::order::{StateKey, is_deletion};
use super::{RunHeader, run_name};
use crate::files::{File, Files};
use crate::record::StateRecord;
use crate::segment::{FORMAT_VERSION, Found, Scanner, unfinished};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

pub(super) const RUN_HEADER_BYTES: u64 = 64;
const MAGIC: &[u8; 8] = b"PROMSTA\n";
const CHECKED: usize = 56;
/// So much is read and written in one go.
const BLOCK_BYTES: usize = 256 << 10;

/// Why a run's header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunHeaderError {
    Newer { version: u16 },
    Damaged,
}

impl RunHeader {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(RUN_HEADER_BYTES as usize);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.next_topic_number.to_le_bytes());
        for number in [self.log_id, self.from, self.to, self.records, self.bytes] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, RunHeaderError> {
        let bytes = bytes
            .get(..RUN_HEADER_BYTES as usize)
            .ok_or(RunHeaderError::Damaged)?;
        let u64_at = |at: usize| {
            let mut array = [0; 8];
            array.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(array)
        };
        if !bytes.starts_with(MAGIC) || xxh3_64(&bytes[..CHECKED]) != u64_at(CHECKED) {
            return Err(RunHeaderError::Damaged);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version > FORMAT_VERSION {
            return Err(RunHeaderError::Newer { version });
        }
        Ok(Self {
            next_topic_number: (u64_at(8) >> 32) as u32,
            log_id: u64_at(16),
            from: u64_at(24),
            to: u64_at(32),
            records: u64_at(40),
            bytes: u64_at(48),
        })
    }

    pub(super) fn read(file: &dyn File) -> io::Result<Result<Self, RunHeaderError>> {
        let mut bytes = [0; RUN_HEADER_BYTES as usize];
        let read = file.read_at(&mut bytes, 0)?;
        Ok(Self::decode(&bytes[..read]))
    }
}

/// Writes a run. It gets its name when it is whole and synced, and takes the place of one that ends with the same segment.
pub(super) struct RunWriter<'a> {
    files: &'a dyn Files,
    file: Arc<dyn File>,
    header: RunHeader,
    buffer: Vec<u8>,
    written: u64,
}

impl<'a> RunWriter<'a> {
    pub(super) fn create(files: &'a dyn Files, header: RunHeader) -> io::Result<Self> {
        Ok(Self {
            files,
            file: files.create(&unfinished(&run_name(header.to)))?,
            header: RunHeader {
                records: 0,
                ..header
            },
            buffer: vec![0; RUN_HEADER_BYTES as usize],
            written: 0,
        })
    }

    /// Adds the record of the next key. The oldest run has nothing to delete from.
    pub(super) fn add(&mut self, record: &StateRecord) -> io::Result<()> {
        if self.header.is_oldest() && is_deletion(record) {
            return Ok(());
        }
        record.write(&mut self.buffer, 0);
        self.header.records += 1;
        if self.buffer.len() >= BLOCK_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    pub(super) fn finish(mut self) -> io::Result<RunHeader> {
        self.flush()?;
        self.header.bytes = self.written;
        self.file.write_at(&self.header.encode(), 0)?;
        self.file.sync()?;
        let name = run_name(self.header.to);
        self.files.rename(&unfinished(&name), &name)?;
        self.files.sync_names()?;
        Ok(self.header)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// What comes next in a run.
pub(super) enum RunItem {
    Record(StateKey, StateRecord),
    Damage(Range<u64>),
}

/// Reads a run from front to back, over damage too.
pub(super) struct RunReader(Scanner);

impl RunReader {
    pub(super) fn new(file: Arc<dyn File>) -> io::Result<Self> {
        let end = file.bytes()?;
        let range = RUN_HEADER_BYTES.min(end)..end;
        Ok(Self(Scanner::over(file, range, BLOCK_BYTES)))
    }

    pub(super) fn next(&mut self) -> io::Result<Option<RunItem>> {
        let item = self.0.next()?.map(|found| match found {
            Found::Damage { from, to } => RunItem::Damage(from..to),
            Found::Record {
                at,
                frame,
                block,
                in_block,
            } => {
                let record = StateRecord::read(&block, in_block, &frame);
                let keyed = record.and_then(|record| Some((StateKey::of(&record)?, record)));
                match keyed {
                    Some((key, record)) => RunItem::Record(key, record),
                    None => RunItem::Damage(at..at + frame.bytes as u64),
                }
            }
        });
        Ok(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::fault::FaultFiles;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_round_trip_and_notice_flips(
            next_topic_number: u32, numbers: [u64; 5], flip in 0usize..512,
        ) {
            let [from, to, records, bytes, log_id] = numbers;
            let header = RunHeader { from, to, records, bytes, next_topic_number, log_id };
            let mut encoded = header.encode();
            prop_assert_eq!(RunHeader::decode(&encoded), Ok(header));
            encoded[flip / 8] ^= 1 << (flip % 8);
            prop_assert_eq!(RunHeader::decode(&encoded), Err(RunHeaderError::Damaged));
        }

        #[test]
        fn runs_round_trip(values in prop::collection::btree_map("[a-z/]{0,20}", ".{0,60}", 0..40)) {
            let files = FaultFiles::new();
            let header = RunHeader::for_segments(2, 3, 9, 7);
            let mut writer = RunWriter::create(&files, header).expect("a file");
            let records: Vec<StateRecord> = values.into_iter().map(|(key, value)| if value.is_empty() { StateRecord::KeyedDelete { key: key.into() } } else { StateRecord::KeyedPut {
                    key: key.into(), version: value.len() as u64, value: value.into_bytes().into(),
                } }).collect();
            for record in &records {
                writer.add(record).expect("room");
            }
            let written = writer.finish().expect("a run");
            prop_assert_eq!(written.records, records.len() as u64);
            let file = files.open(&run_name(3)).expect("its name");
            prop_assert_eq!(RunHeader::read(&*file).expect("a header"), Ok(written));
            prop_assert_eq!(file.bytes().expect("a length"), written.bytes);
            let mut reader = RunReader::new(file).expect("a reader");
            let mut found = Vec::new();
            while let Some(item) = reader.next().expect("the disk") {
                match item {
                    RunItem::Record(_, record) => found.push(record),
                    RunItem::Damage(range) => prop_assert!(false, "damage at {:?}", range),
                }
            }
            prop_assert_eq!(found, records);
        }
    }
}
