//! The limits on publishing to topics: a bucket for each topic that is being published to, at the rate that the first
//! matching pattern gives it, or else the default.
//!
//! A full bucket is no different from none, so full ones are forgotten when there are too many. While too many are not
//! full, further topics share a bucket per rate: memory stays bounded, and the limit holds.

use super::bucket::{Bucket, RetryAfter};
use super::config::Rate;
use prombus::LockExt;
use prombus::Pattern;
use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

/// The most topics that have a bucket of their own at once.
const MAX_TOPIC_BUCKETS: usize = 4_096;
/// How often full buckets are looked for, so that the search costs little however many topics come.
const SWEEP_GAP_MS: u64 = 100;

/// The buckets of all topics. One is shared by all connections.
pub struct TopicLimits {
    default: Option<Rate>,
    patterns: Vec<(Pattern, Rate)>,
    max_buckets: usize,
    buckets: Mutex<Buckets>,
}

#[derive(Default)]
struct Buckets {
    by_topic: HashMap<String, Bucket>,
    /// For topics that find no place, by the pattern that gives them their rate; the default's is at the end.
    shared: HashMap<usize, Bucket>,
    swept_at_ms: Option<u64>,
}

impl TopicLimits {
    /// Limits by pattern, the first that matches, and for all other topics.
    pub fn new(default: Option<Rate>, patterns: Vec<(Pattern, Rate)>) -> Self {
        Self::with_room_for(MAX_TOPIC_BUCKETS, default, patterns)
    }

    /// Takes `events` from the topic's bucket, all or none.
    pub fn take(&self, topic: &str, events: u32, now_ms: u64) -> Result<(), RetryAfter> {
        let Some((at, rate)) = self.rate_of(topic) else {
            return Ok(());
        };
        let mut buckets = self.buckets.guard();
        if let Some(bucket) = buckets.by_topic.get_mut(topic) {
            return bucket.take(events, now_ms);
        }
        let mut bucket = Bucket::full(rate, now_ms);
        if !buckets.make_room(self.max_buckets, now_ms) {
            return buckets
                .shared
                .entry(at)
                .or_insert(bucket)
                .take(events, now_ms);
        }
        let taken = bucket.take(events, now_ms);
        buckets.by_topic.insert(topic.to_owned(), bucket);
        taken
    }

    /// The topic's rate, and which pattern gives it.
    fn rate_of(&self, topic: &str) -> Option<(usize, Rate)> {
        let found = self
            .patterns
            .iter()
            .position(|(pattern, _)| pattern.matches(topic));
        match found {
            Some(at) => Some((at, self.patterns[at].1)),
            None => self.default.map(|rate| (self.patterns.len(), rate)),
        }
    }

    fn with_room_for(
        max_buckets: usize,
        default: Option<Rate>,
        patterns: Vec<(Pattern, Rate)>,
    ) -> Self {
        Self {
            default,
            patterns,
            max_buckets,
            buckets: Mutex::default(),
        }
    }
}

impl Buckets {
    /// Whether one more bucket fits, if need be after forgetting the full ones.
    fn make_room(&mut self, max_buckets: usize, now_ms: u64) -> bool {
        let may_sweep = self
            .swept_at_ms
            .is_none_or(|swept_at_ms| now_ms.saturating_sub(swept_at_ms) >= SWEEP_GAP_MS);
        if self.by_topic.len() >= max_buckets && may_sweep {
            self.by_topic.retain(|_, bucket| !bucket.is_full(now_ms));
            self.swept_at_ms = Some(now_ms);
        }
        self.by_topic.len() < max_buckets
    }
}

impl fmt::Debug for TopicLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicLimits")
            .field("default", &self.default)
            .field("patterns", &self.patterns)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Rate = Rate {
        capacity: 1,
        refill_per_sec: 1,
    };

    fn rate(capacity: u32) -> Rate {
        Rate {
            capacity,
            refill_per_sec: 1,
        }
    }

    fn pattern(text: &str) -> Pattern {
        Pattern::for_topics(text).expect("a pattern")
    }

    fn live(limits: &TopicLimits) -> usize {
        limits.buckets.lock().expect("a lock").by_topic.len()
    }

    #[test]
    fn the_first_pattern_that_matches_gives_the_rate() {
        let patterns = vec![
            (pattern("a.b"), rate(3)),
            (pattern("a.*"), rate(2)),
            (pattern("**.b"), rate(9)),
        ];
        let limits = TopicLimits::new(Some(ONE), patterns.clone());
        for (topic, capacity) in [("a.b", 3), ("a.c", 2), ("a.d", 2), ("c.b", 9), ("else", 1)] {
            for taken in 0..capacity {
                assert_eq!(limits.take(topic, 1, 0), Ok(()), "{topic} {taken}");
            }
            assert_eq!(
                limits.take(topic, 1, 0),
                Err(RetryAfter { ms: 1_000 }),
                "{topic}"
            );
        }
        let only_patterns = TopicLimits::new(None, patterns);
        assert_eq!(only_patterns.take("else", u32::MAX, 0), Ok(()));
        assert_eq!(live(&only_patterns), 0);
    }

    #[test]
    fn full_buckets_are_forgotten_and_the_others_are_not() {
        let limits = TopicLimits::with_room_for(2, Some(rate(2)), Vec::new());
        assert_eq!(limits.take("slow", 2, 0), Ok(()));
        assert_eq!(limits.take("quick", 1, 0), Ok(()));
        assert_eq!(
            limits.take("new", 2, 1_000),
            Ok(()),
            "quick is full again and makes room"
        );
        assert_eq!(live(&limits), 2);
        assert_eq!(limits.take("slow", 2, 1_000), Err(RetryAfter { ms: 1_000 }));
    }

    #[test]
    fn topics_without_a_place_share_a_bucket_per_rate() {
        let patterns = vec![(pattern("p.*"), rate(3))];
        let limits = TopicLimits::with_room_for(2, Some(ONE), patterns);
        assert_eq!(limits.take("a", 1, 0), Ok(()));
        assert_eq!(limits.take("b", 1, 0), Ok(()));
        assert_eq!(limits.take("c", 1, 0), Ok(()));
        for topic in ["d", "e"] {
            assert_eq!(limits.take(topic, 1, 0), Err(RetryAfter { ms: 1_000 }));
        }
        assert_eq!(
            limits.take("p.a", 2, 0),
            Ok(()),
            "another rate, another bucket"
        );
        assert!(limits.take("p.b", 2, 0).is_err());
        assert_eq!(live(&limits), 2);
        assert_eq!(limits.take("d", 1, 1_000), Ok(()), "there is room again");
        assert_eq!(limits.take("e", 1, 1_000), Ok(()));
        assert_eq!(live(&limits), 2);
    }

    #[test]
    fn any_number_of_topics_takes_bounded_room() {
        let limits = TopicLimits::new(Some(ONE), Vec::new());
        for topic in 0..20_000_u64 {
            let _ = limits.take(&format!("t{topic}"), 1, topic / 100);
        }
        assert_eq!(live(&limits), MAX_TOPIC_BUCKETS);
    }
}
