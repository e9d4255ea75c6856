//! Names of topics and groups: what they may consist of, and the topics that dead letters go to.

use crate::invalid_field::quoted;
use thiserror::Error;

/// An invalid topic name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid topic name {name:?}: {reason}")]
pub struct InvalidTopic {
    /// The name, truncated if long.
    pub name: String,
    /// The rule that it breaks.
    pub reason: &'static str,
}

/// An invalid group name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid group name {name:?}: {reason}")]
pub struct InvalidGroup {
    /// The name, truncated if long.
    pub name: String,
    /// The rule that it breaks.
    pub reason: &'static str,
}

/// The longest topic name.
pub const MAX_TOPIC_BYTES: usize = 249;
/// The longest group name.
pub const MAX_GROUP_BYTES: usize = 128;

/// Topics that start with this hold the dead letters of the topic named by the rest.
const DEAD_LETTER_PREFIX: &str = "dlq.";

/// Topics that start with this are the bus's own.
const INTERNAL_PREFIX: char = '$';

/// How much of a long topic's name its dead letters' topic has.
const LONG_TOPIC_CHARS: usize = 228;

/// Checks a topic's name: dot-separated segments of `A-Z a-z 0-9 _ -`, 1 to 249 characters.
pub fn check_topic(name: &str) -> Result<(), InvalidTopic> {
    let bad = |reason| InvalidTopic {
        name: quoted(name),
        reason,
    };
    if name.is_empty() {
        return Err(bad("empty"));
    }
    if name.len() > MAX_TOPIC_BYTES {
        return Err(bad("longer than 249 characters"));
    }
    let mut segment_bytes = 0;
    for byte in name.bytes() {
        match byte {
            b'.' if segment_bytes == 0 => return Err(bad("empty segment")),
            b'.' => segment_bytes = 0,
            _ if is_name_byte(byte) => segment_bytes += 1,
            _ => return Err(bad("only A-Z a-z 0-9 _ - and dots are allowed")),
        }
    }
    if segment_bytes == 0 {
        return Err(bad("empty segment"));
    }
    Ok(())
}

/// Checks a group's name: 1 to 128 of `A-Z a-z 0-9 _ - . :`.
pub fn check_group(name: &str) -> Result<(), InvalidGroup> {
    let bad = |reason| InvalidGroup {
        name: quoted(name),
        reason,
    };
    if name.is_empty() {
        return Err(bad("empty"));
    }
    if name.len() > MAX_GROUP_BYTES {
        return Err(bad("longer than 128 characters"));
    }
    if !name
        .bytes()
        .all(|byte| is_name_byte(byte) || matches!(byte, b'.' | b':'))
    {
        return Err(bad("only A-Z a-z 0-9 _ - . : are allowed"));
    }
    Ok(())
}

/// Whether a topic is internal to the bus and hidden from users: its name is not one that users can give.
pub fn is_internal_topic(topic: &str) -> bool {
    topic.starts_with(INTERNAL_PREFIX)
}

/// Whether a topic holds dead letters. Its events are never dead-lettered again.
pub fn is_dead_letter_topic(topic: &str) -> bool {
    topic.starts_with(DEAD_LETTER_PREFIX)
}

/// Where the dead letters of `topic` go: `dlq.` and its name. Where that is longer than 249 characters, the name is cut to
/// 228 (dots at the end go too), and `-` and the 16 hexadecimal digits of the whole name's FNV-1a hash follow, so that no
/// two topics share their dead letters.
pub fn dead_letter_topic(topic: &str) -> String {
    let name = format!("{DEAD_LETTER_PREFIX}{topic}");
    if name.len() <= MAX_TOPIC_BYTES {
        return name;
    }
    let cut: String = topic.chars().take(LONG_TOPIC_CHARS).collect();
    let cut = cut.trim_end_matches('.');
    format!("{DEAD_LETTER_PREFIX}{cut}-{:016x}", stable_hash(topic))
}

/// The 64-bit FNV-1a hash of a text. It is part of names that are stored, so it never changes.
pub fn stable_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn topics_are_dot_separated_segments() {
        for good in ["a", "heartbeat.received", "A-Z.a_z.0-9", &"x".repeat(249)] {
            assert!(check_topic(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a b",
            "a*",
            "ü",
            "a/b",
            &"x".repeat(250),
        ] {
            assert!(check_topic(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn groups_may_have_dots_and_colons_anywhere() {
        for good in ["g", ".", "a:b.c-d_e", &"x".repeat(128)] {
            assert!(check_group(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "ü", &"x".repeat(129)] {
            assert!(check_group(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn long_topics_have_dead_letters_of_their_own() {
        let long = |last: &str| format!("{}{last}", "x".repeat(244));
        assert_eq!(dead_letter_topic(&long("a")), format!("dlq.{}", long("a")));
        let names = ["ab", "ac", "abc"].map(|last| dead_letter_topic(&long(last)));
        for (at, name) in names.iter().enumerate() {
            assert!(check_topic(name).is_ok(), "{name}");
            assert!(!names[..at].contains(name), "{name}");
        }
        assert!(names[0].ends_with(&format!("-{:016x}", stable_hash(&long("ab")))));
        assert_eq!(stable_hash("a"), 0xaf63_dc4c_8601_ec8c, "it is FNV-1a");
    }

    proptest! {
        #[test]
        fn dead_letter_topics_are_topics(topic in "[a-z]{1,9}(\\.[a-z]{1,9}){0,60}") {
            prop_assume!(check_topic(&topic).is_ok());
            let dead = dead_letter_topic(&topic);
            prop_assert!(check_topic(&dead).is_ok(), "{dead}");
            prop_assert!(is_dead_letter_topic(&dead));
        }
    }
}
