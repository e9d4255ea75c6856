//! Harm to the files of a log.

use super::populated::Populated;
use prombus_log::Files;
use prombus_log::fault::FaultFiles;
use prombus_store::conformance::Random;

/// A harmed copy of a log.
pub(super) struct Harm {
    /// What was done, for the reader of a failure.
    pub(super) what: String,
    pub(super) disk: FaultFiles,
    /// The files that were harmed.
    pub(super) names: Vec<String>,
}

impl Harm {
    /// Harm that the seed decides.
    pub(super) fn choose(log: &Populated, foreign: &Populated, seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let names = match random.index(10) {
            0 => log.names(""),
            1 | 2 => log.names(".idx"),
            _ => log.names(".seg"),
        };
        let name = &names[random.index(names.len())];
        let other = &names[random.index(names.len())];
        match random.index(12) {
            0 => Self::swap(log, name, other),
            1 => Self::copy(log, name, other),
            2 => Self::remove(log, &[name]),
            3 => {
                let of_foreign = foreign.names(".seg");
                let from = &of_foreign[random.index(of_foreign.len())];
                Self::foreign(log, foreign, from, name)
            }
            way => Self::bytes(log, name, way, &mut random),
        }
    }

    pub(super) fn swap(log: &Populated, one: &str, other: &str) -> Self {
        let harm = Self::on(log, format!("swap {one} and {other}"), &[one, other]);
        let bytes = [one, other].map(|name| log.disk.bytes_of(name).expect("a file"));
        harm.put(one, &bytes[1]);
        harm.put(other, &bytes[0]);
        harm
    }

    pub(super) fn copy(log: &Populated, from: &str, to: &str) -> Self {
        let harm = Self::on(log, format!("copy {from} over {to}"), &[to]);
        harm.put(to, &log.disk.bytes_of(from).expect("a file"));
        harm
    }

    pub(super) fn foreign(log: &Populated, foreign: &Populated, from: &str, to: &str) -> Self {
        let harm = Self::on(log, format!("{to} becomes another log's {from}"), &[to]);
        if let Ok(bytes) = foreign.disk.bytes_of(from) {
            harm.put(to, &bytes);
        }
        harm
    }

    pub(super) fn remove(log: &Populated, names: &[&str]) -> Self {
        let harm = Self::on(log, format!("remove {names:?}"), names);
        for name in names {
            // Not every segment has an index, and not every log a mark.
            let _ = harm.disk.remove(name);
        }
        harm
    }

    fn bytes(log: &Populated, name: &str, way: usize, random: &mut Random) -> Self {
        let mut bytes = log.disk.bytes_of(name).expect("a file");
        let used = bytes
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |at| at + 1);
        let at = random.index(used.max(1));
        let length = random.index((used - at).clamp(1, 400)) + 1;
        let range = at..(at + length).min(bytes.len());
        let to = random.index(used.max(1));
        let what = match way {
            4..=7 => {
                for _ in 0..1 + random.index(3) {
                    let at = random.index(bytes.len().max(1));
                    bytes[at] ^= 1 << random.index(8);
                }
                "flip bits"
            }
            8 => {
                bytes[range.clone()].fill(0);
                "zero"
            }
            9 => {
                let to = to.min(bytes.len() - range.len());
                bytes.copy_within(range.clone(), to);
                "copy a range over another"
            }
            10 => {
                let copy = bytes[range.clone()].to_vec();
                bytes.splice(to..to, copy);
                "insert a copy of a range"
            }
            _ => {
                bytes.truncate(at);
                "cut"
            }
        };
        let harm = Self::on(log, format!("{what} of {name}, {range:?} to {to}"), &[name]);
        harm.put(name, &bytes);
        harm
    }

    fn on(log: &Populated, what: String, names: &[&str]) -> Self {
        Self {
            what,
            disk: log.disk.copy(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        if self.disk.open(name).is_err() {
            self.disk.create(name).expect("a file");
        }
        let replace = |content: &mut Vec<u8>| *content = bytes.to_vec();
        self.disk.overwrite(name, replace).expect("a file");
    }
}
