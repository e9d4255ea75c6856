//! Names of topics and groups: what they may consist of, and the topics that dead letters go to.

use crate::error::{BadGroup, BadTopic};

/// The longest topic name.
pub const MAX_TOPIC_BYTES: usize = 249;
/// The longest group name.
pub const MAX_GROUP_BYTES: usize = 128;

/// Topics that start with this hold the dead letters of the topic named by the rest.
const DEAD_LETTER_PREFIX: &str = "dlq.";

/// Checks a topic's name: dot-separated segments of `A-Z a-z 0-9 _ -`, 1 to 249 characters.
pub fn check_topic(name: &str) -> Result<(), BadTopic> {
    let bad = |why| BadTopic::new(name, why);
    if name.is_empty() {
        return Err(bad("it is empty"));
    }
    if name.len() > MAX_TOPIC_BYTES {
        return Err(bad("it is longer than 249 characters"));
    }
    let mut segment_bytes = 0;
    for byte in name.bytes() {
        match byte {
            b'.' if segment_bytes == 0 => return Err(bad("it has an empty segment")),
            b'.' => segment_bytes = 0,
            _ if is_name_byte(byte) => segment_bytes += 1,
            _ => return Err(bad("it may only have A-Z a-z 0-9 _ - and dots")),
        }
    }
    if segment_bytes == 0 {
        return Err(bad("it has an empty segment"));
    }
    Ok(())
}

/// Checks a group's name: 1 to 128 of `A-Z a-z 0-9 _ - . :`.
pub fn check_group(name: &str) -> Result<(), BadGroup> {
    let bad = |why| BadGroup::new(name, why);
    if name.is_empty() {
        return Err(bad("it is empty"));
    }
    if name.len() > MAX_GROUP_BYTES {
        return Err(bad("it is longer than 128 characters"));
    }
    if !name
        .bytes()
        .all(|byte| is_name_byte(byte) || matches!(byte, b'.' | b':'))
    {
        return Err(bad("it may only have A-Z a-z 0-9 _ - . :"));
    }
    Ok(())
}

/// Whether a topic holds dead letters. Its events are never dead-lettered again.
pub fn is_dead_letter_topic(topic: &str) -> bool {
    topic.starts_with(DEAD_LETTER_PREFIX)
}

/// Where the dead letters of `topic` go. A name that would grow too long is cut; the letter itself names its topic.
pub fn dead_letter_topic(topic: &str) -> String {
    let mut name = format!("{DEAD_LETTER_PREFIX}{topic}");
    name.truncate(MAX_TOPIC_BYTES);
    name.truncate(name.trim_end_matches('.').len());
    name
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
