//! Patterns over dot-separated names: `*` matches one segment, `**` any number of them (none too), anywhere.
//! Within a segment `*` matches any run of characters. One matcher serves fan-in, filters and policies.

use crate::invalid_field::quoted;
use crate::names::{MAX_TOPIC_BYTES, is_name_byte};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use thiserror::Error;

/// The longest pattern over keys, as long as a key.
const MAX_PATTERN_BYTES: usize = 512;

/// An invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid pattern {pattern:?}: {reason}")]
pub struct InvalidPattern {
    /// The pattern, truncated if long.
    pub pattern: String,
    /// The rule that it breaks.
    pub reason: &'static str,
}

/// A compiled pattern.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    One,
    Glob(String),
    Any,
}

impl Pattern {
    /// A pattern over any dot-separated text, such as keys.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let bad = |reason| InvalidPattern {
            pattern: quoted(text),
            reason,
        };
        if text.len() > MAX_PATTERN_BYTES {
            return Err(bad("longer than 512 bytes"));
        }
        let segments = text
            .split('.')
            .map(|segment| match segment {
                "**" => Ok(Segment::Any),
                "*" => Ok(Segment::One),
                _ if segment.contains("**") => Err(bad("** must be a whole segment")),
                _ if segment.contains('*') => Ok(Segment::Glob(segment.to_owned())),
                _ => Ok(Segment::Literal(segment.to_owned())),
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            segments,
        })
    }

    /// A pattern over topic names; a plain name is one that matches only itself.
    pub fn for_topics(text: &str) -> Result<Self, InvalidPattern> {
        let bad = |reason| InvalidPattern {
            pattern: quoted(text),
            reason,
        };
        if text.len() > MAX_TOPIC_BYTES {
            return Err(bad("longer than 249 characters"));
        }
        if text.split('.').any(str::is_empty) {
            return Err(bad("empty segment"));
        }
        if !text
            .bytes()
            .all(|byte| is_name_byte(byte) || matches!(byte, b'.' | b'*'))
        {
            return Err(bad("only A-Z a-z 0-9 _ - * and dots are allowed"));
        }
        Self::new(text)
    }

    /// Whether `text` would be a pattern rather than a name.
    pub fn is_pattern(text: &str) -> bool {
        text.contains('*')
    }

    /// Whether the whole of `name` fits.
    pub fn matches(&self, name: &str) -> bool {
        let mut at = 0;
        let mut rest = Some(name);
        // After a mismatch the latest `**` takes one more segment; earlier ones never have to.
        let mut retry: Option<(usize, Option<&str>)> = None;
        loop {
            match (self.segments.get(at), rest) {
                (Some(Segment::Any), _) => {
                    at += 1;
                    retry = Some((at, rest));
                    continue;
                }
                (Some(segment), Some(text)) => {
                    let (first, following) = split_first(text);
                    if segment.matches(first) {
                        at += 1;
                        rest = following;
                        continue;
                    }
                }
                (None, None) => return true,
                (Some(_), None) | (None, Some(_)) => {}
            }
            let Some((after, Some(text))) = retry else {
                return false;
            };
            let (_, following) = split_first(text);
            retry = Some((after, following));
            at = after;
            rest = following;
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Segment {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => literal == text,
            Self::One | Self::Any => true,
            Self::Glob(glob) => glob_matches(glob, text),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// The first segment, and what follows its dot.
fn split_first(text: &str) -> (&str, Option<&str>) {
    match text.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    }
}

/// Matches the literals between the stars of `glob` in order: the first as a prefix, the last as a suffix.
fn glob_matches(glob: &str, text: &str) -> bool {
    let Some((prefix, mut rest)) = glob.split_once('*') else {
        return glob == text;
    };
    let Some(mut text) = text.strip_prefix(prefix) else {
        return false;
    };
    while let Some((literal, following)) = rest.split_once('*') {
        let Some(found) = text.find(literal) else {
            return false;
        };
        text = &text[found + literal.len()..];
        rest = following;
    }
    text.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, spelled out without any cleverness.
    fn naive(pattern: &[&str], name: &[&str]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
            (Some((glob, pattern)), Some((segment, name))) => {
                naive_glob(glob.as_bytes(), segment.as_bytes()) && naive(pattern, name)
            }
            _ => false,
        }
    }

    fn naive_glob(glob: &[u8], text: &[u8]) -> bool {
        match glob.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|taken| naive_glob(rest, &text[taken..])),
            Some((byte, rest)) => text.first() == Some(byte) && naive_glob(rest, &text[1..]),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn agrees_with_the_definition(
            pattern in prop::collection::vec("\\*\\*|\\*|[ab]{1,2}|a\\*|\\*b|a\\*b\\*a", 1..6),
            name in prop::collection::vec("[ab]{1,4}", 1..7),
        ) {
            let compiled = Pattern::for_topics(&pattern.join(".")).expect("a pattern");
            let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
            let segments: Vec<&str> = name.iter().map(String::as_str).collect();
            prop_assert_eq!(compiled.matches(&name.join(".")), naive(&pattern, &segments));
        }
    }

    #[test]
    fn stars_stand_for_segments() {
        let fits =
            |pattern: &str, name: &str| Pattern::new(pattern).expect("a pattern").matches(name);
        assert!(fits("heartbeat.*", "heartbeat.received"));
        assert!(!fits("heartbeat.*", "heartbeat"));
        assert!(!fits("heartbeat.*", "heartbeat.a.b"));
        assert!(fits("process.**", "process"));
        assert!(fits("process.**", "process.a.b"));
        assert!(fits("**.state", "process.state"));
        assert!(fits("a.**.z.*", "a.z.z.q"));
        assert!(fits("web-*", "web-17"));
        assert!(!fits("web-*", "web-17.eu"));
        assert!(fits("**", ""));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in ["", "a..b", "a**", "a.b c", "ü.*"] {
            assert!(Pattern::for_topics(bad).is_err(), "{bad}");
        }
        assert!(Pattern::for_topics(&"x".repeat(250)).is_err());
        assert!(Pattern::new(&"x".repeat(513)).is_err());
    }
}
