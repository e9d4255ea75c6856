//! What the URL of every shared store may say: how far the log may grow (`snapshot_bytes=256MiB`, `absent=60`), and how long a
//! start waits for its servers (`wait=30`).

use crate::Options;
use std::time::Duration;

/// The smallest snapshot interval: below it a log would be made of snapshots.
const MIN_SNAPSHOT_BYTES: u64 = 1 << 20;
/// The shortest absence: nodes without groups are heard of every ten seconds.
const MIN_ABSENT: Duration = Duration::from_secs(30);

/// How long a start waits for servers, unless the URL says otherwise. JetStream elects a leader in 4 to 8 s.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);
/// The longest wait: an hour.
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// The options of a URL; those that are not there are left as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UrlOptions {
    snapshot_bytes: Option<u64>,
    absent_after: Option<Duration>,
    wait: Option<Duration>,
}

impl UrlOptions {
    /// Takes an option of a URL; `false` where it is none of these.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "snapshot_bytes" => {
                let bytes = parse_bytes(value).filter(|bytes| *bytes >= MIN_SNAPSHOT_BYTES);
                let bytes = bytes.ok_or_else(|| {
                    format!("snapshot_bytes={value} is no size of at least 1MiB, as in 256MiB")
                })?;
                self.snapshot_bytes = Some(bytes);
            }
            "absent" => {
                let absent = value.parse().ok().map(Duration::from_secs);
                let absent = absent.filter(|absent| *absent >= MIN_ABSENT);
                let absent = absent
                    .ok_or_else(|| format!("absent={value} is no number of seconds from 30 on"))?;
                self.absent_after = Some(absent);
            }
            "wait" => {
                let wait = value.parse().ok().map(Duration::from_secs);
                let wait = wait.filter(|wait| *wait <= MAX_WAIT);
                let wait =
                    wait.ok_or_else(|| format!("wait={value} is no number of seconds up to 3600"))?;
                self.wait = Some(wait);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// How long a start tries again where servers do not answer or elect a leader.
    pub fn wait(&self) -> Duration {
        self.wait.unwrap_or(DEFAULT_WAIT)
    }

    /// Options of a node with what the URL says.
    pub fn apply(&self, options: Options) -> Options {
        Options {
            snapshot_bytes: self.snapshot_bytes.unwrap_or(options.snapshot_bytes),
            absent_after: self.absent_after.unwrap_or(options.absent_after),
            ..options
        }
    }
}

/// A number of bytes, with `KiB`, `MiB` or `GiB` or without.
fn parse_bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let found = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (number, shift) = found.unwrap_or((text, 0));
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_seconds_are_read_and_their_bounds_kept() {
        let mut set = UrlOptions::default();
        assert_eq!(set.wait(), DEFAULT_WAIT);
        assert_eq!(set.set("snapshot_bytes", "64MiB"), Ok(true));
        assert_eq!(set.set("absent", "90"), Ok(true));
        assert_eq!(set.set("wait", "0"), Ok(true));
        assert_eq!(set.set("copy", "x"), Ok(false));
        assert_eq!(set.wait(), Duration::ZERO);
        let options = set.apply(Options::default());
        assert_eq!(options.snapshot_bytes, 64 << 20);
        assert_eq!(options.absent_after, Duration::from_secs(90));
        for (name, value) in [
            ("snapshot_bytes", "1023KiB"),
            ("snapshot_bytes", "many"),
            ("snapshot_bytes", "99999999999GiB"),
            ("absent", "29"),
            ("absent", "1m"),
            ("wait", "3601"),
            ("wait", "-1"),
        ] {
            let error = set.set(name, value).expect_err("out of bounds");
            assert!(error.contains(value), "{error}");
        }
    }
}
