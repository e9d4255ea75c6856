//! What is published: JSON of 256 bytes with a number and a time in it, and the check that each one arrived as it was
//! sent, once.

use crate::Outcome;

/// The size of every payload.
pub const PAYLOAD_BYTES: usize = 256;

const HEAD: &str = r#"{"number":1"#;
const NUMBER_DIGITS: usize = 9;
const MIDDLE: &str = r#","due_ns":1"#;
const DUE_DIGITS: usize = 15;
const TAIL: &str = concat!(
    r#","name":"sensor-7","state":"running","text":""#,
    "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. ",
    "The quick brown fox jumps over the lazy dog. The quick brown fox jumps ov",
    r#""}"#
);
const NUMBER_AT: usize = HEAD.len();
const DUE_AT: usize = NUMBER_AT + NUMBER_DIGITS + MIDDLE.len();
const FILL_AT: usize = DUE_AT + DUE_DIGITS;

/// One payload. Numbers and times have leading ones, so that all are equally long and still plain JSON.
#[derive(Debug, Clone)]
pub struct Payload(String);

impl Payload {
    /// The payload with this number that is due at `due_ns`, counted from the beginning of the run.
    pub fn new(number: u64, due_ns: u64) -> Self {
        let mut payload = Self(String::with_capacity(PAYLOAD_BYTES));
        payload.set(number, due_ns);
        payload
    }

    /// Makes another one of it. This is on the way of every event that is sent, and costs all systems the same.
    pub fn set(&mut self, number: u64, due_ns: u64) {
        let text = &mut self.0;
        text.clear();
        text.push_str(HEAD);
        push_digits::<NUMBER_DIGITS>(text, number);
        text.push_str(MIDDLE);
        push_digits::<DUE_DIGITS>(text, due_ns);
        text.push_str(TAIL);
    }

    /// Its JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn push_digits<const COUNT: usize>(text: &mut String, mut number: u64) {
    let mut digits = [b'0'; COUNT];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    // Digits are always text.
    text.push_str(std::str::from_utf8(&digits).unwrap_or_default());
}

/// What can be read from a payload that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its number in the run.
    pub number: u64,
    /// When it was due to be published.
    pub due_ns: u64,
}

/// Checks that payloads arrive whole, and each of a known count exactly once.
#[derive(Debug)]
pub struct Checker {
    template: Payload,
    arrived: Vec<bool>,
    left: u64,
    fault: Option<String>,
}

impl Checker {
    /// Expects the numbers from 0 to below `count`.
    pub fn new(count: u64) -> Self {
        Self {
            template: Payload::new(0, 0),
            arrived: vec![false; usize::try_from(count).unwrap_or_default()],
            left: count,
            fault: None,
        }
    }

    /// Takes note of a payload; `None` where it is not as it should be.
    pub fn see(&mut self, payload: &[u8]) -> Option<Seen> {
        let seen = self.read(payload);
        let Some(seen) = seen else {
            let text = String::from_utf8_lossy(payload);
            self.fault.get_or_insert(format!("this arrived: {text}"));
            return None;
        };
        let place = usize::try_from(seen.number)
            .ok()
            .and_then(|at| self.arrived.get_mut(at));
        match place {
            Some(arrived) if !*arrived => {
                *arrived = true;
                self.left -= 1;
            }
            Some(_) => {
                self.fault
                    .get_or_insert(format!("{} arrived twice", seen.number));
            }
            None => {
                self.fault
                    .get_or_insert(format!("{} arrived and was never sent", seen.number));
            }
        }
        Some(seen)
    }

    /// Whether nothing is missing, or something is wrong already: then there is nothing to wait for.
    pub fn is_over(&self) -> bool {
        self.left == 0 || self.fault.is_some()
    }

    /// Whether something arrived that was not as it should be.
    pub fn is_faulty(&self) -> bool {
        self.fault.is_some()
    }

    /// Fails unless everything arrived once and whole.
    pub fn verdict(self) -> Outcome<()> {
        match self.fault {
            Some(fault) => Err(fault.into()),
            None if self.left > 0 => {
                Err(format!("{} of {} never arrived", self.left, self.arrived.len()).into())
            }
            None => Ok(()),
        }
    }

    fn read(&self, payload: &[u8]) -> Option<Seen> {
        let template = self.template.0.as_bytes();
        let is_same = |from: usize, to: usize| payload.get(from..to) == template.get(from..to);
        let is_whole = payload.len() == PAYLOAD_BYTES
            && is_same(0, NUMBER_AT)
            && is_same(NUMBER_AT + NUMBER_DIGITS, DUE_AT)
            && is_same(FILL_AT, PAYLOAD_BYTES);
        if !is_whole {
            return None;
        }
        Some(Seen {
            number: digits(&payload[NUMBER_AT..NUMBER_AT + NUMBER_DIGITS])?,
            due_ns: digits(&payload[DUE_AT..FILL_AT])?,
        })
    }
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0_u64, |sum, digit| match digit {
        b'0'..=b'9' => Some(sum * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_json_of_one_size() {
        for (number, due_ns) in [(0, 0), (999_999_999, 999_999_999_999_999)] {
            let payload = Payload::new(number, due_ns);
            assert_eq!(payload.as_str().len(), PAYLOAD_BYTES);
            let value: serde_json::Value = serde_json::from_str(payload.as_str()).unwrap();
            assert_eq!(value["number"], 1_000_000_000 + number);
        }
    }

    #[test]
    fn what_arrives_once_and_whole_is_fine() {
        let mut checker = Checker::new(2);
        let seen = checker.see(Payload::new(1, 77).as_str().as_bytes());
        assert_eq!(
            seen,
            Some(Seen {
                number: 1,
                due_ns: 77
            })
        );
        assert!(!checker.is_over());
        checker.see(Payload::new(0, 5).as_str().as_bytes());
        assert!(checker.is_over());
        checker.verdict().unwrap();
    }

    #[test]
    fn what_is_missing_doubled_strange_or_damaged_is_told() {
        let outcome = |payloads: &[&str]| {
            let mut checker = Checker::new(2);
            for payload in payloads {
                checker.see(payload.as_bytes());
            }
            checker.verdict().unwrap_err().to_string()
        };
        let (one, far) = (Payload::new(1, 0), Payload::new(2, 0));
        let damaged = one.as_str().replace("fox", "fax");
        assert_eq!(outcome(&[one.as_str()]), "1 of 2 never arrived");
        assert_eq!(outcome(&[one.as_str(), one.as_str()]), "1 arrived twice");
        assert_eq!(outcome(&[far.as_str()]), "2 arrived and was never sent");
        assert!(outcome(&[&damaged]).starts_with("this arrived: {"));
    }
}
