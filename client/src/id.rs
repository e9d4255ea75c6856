//! The generator of ids for publishes that may have to be sent twice.

pub(crate) use prombus_interface::Id;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Digits of the time in an id that was made: enough that all are equally long for the next 500 years.
const TIME_DIGITS: u32 = 11;

/// Makes ids that no other client makes: the time, 96 random bits for the client and a number for the event. They begin
/// with the time because a server that keeps names in order then knows where an id would have to be, without looking
/// through all that it holds.
#[derive(Debug)]
pub(crate) struct IdGenerator {
    client: String,
    next: AtomicU64,
}

impl IdGenerator {
    /// `random` is 12 random bytes.
    pub(crate) fn new(random: [u8; 12]) -> Self {
        let client: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let client = format!("-{client}-");
        let next = AtomicU64::new(1);
        Self { client, next }
    }

    /// Writes the next id into `text`, which is emptied first.
    pub(crate) fn make(&self, text: &mut String) {
        self.make_at(now_ms(), text);
    }

    fn make_at(&self, now_ms: u64, text: &mut String) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        text.clear();
        push_hex(text, now_ms, TIME_DIGITS);
        text.push_str(&self.client);
        push_hex(text, number, 1);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "an id is unique by its other parts; the time only tells servers where to look for it"
)]
fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.map_or(0, |time| time.as_millis() as u64)
}

/// Writes a number with at least `digits` digits.
fn push_hex(text: &mut String, number: u64, digits: u32) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(digits);
    for place in (0..digits).rev() {
        let digit = (number >> (place * 4)) & 0xf;
        text.push(char::from(
            b"0123456789abcdef"[usize::try_from(digit).unwrap_or(0)],
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_ids_differ_and_are_valid() {
        let maker = IdGenerator::new([7; 12]);
        let (mut one, mut other) = (String::new(), String::new());
        maker.make_at(1_750_000_000_000, &mut one);
        (0..300).for_each(|_| maker.make_at(1_750_000_000_001, &mut other));
        assert_eq!(one, "1977420dc00-070707070707070707070707-1");
        assert_eq!(other, "1977420dc01-070707070707070707070707-12d");
        assert!(one < other);
        maker.make_at(u64::MAX, &mut other);
        assert!(Id::from_client(&other).is_some());
    }
}
