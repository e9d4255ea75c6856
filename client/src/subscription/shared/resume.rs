//! How far an ephemeral subscription has come. Its group is gone with the connection; the next one is made to go on
//! where this one stopped, and what comes twice for that is passed over.

use prombus_interface::StartAt;
use std::collections::HashMap;
use std::sync::Arc;

/// Topics whose positions are remembered over a break. Beyond them events may come twice.
const MAX_RESUMED_TOPICS: usize = 10_000;
/// How far before the last event that was handed out a subscription to several topics goes on. They come in turns: of
/// one that had its turn last, earlier events may not have come yet.
const RESUME_OVERLAP_MS: u64 = 10_000;

/// What was handed out of an ephemeral subscription.
#[derive(Debug, Default)]
pub(super) struct Resume {
    /// StartAt and time of the first event that came.
    first: Option<(u64, u64)>,
    /// The time of the last event that was handed out.
    last_ts: Option<u64>,
    /// The last position of each topic that was handed out.
    positions: HashMap<Arc<str>, u64>,
    /// The same as of the last break.
    resumed: HashMap<Arc<str>, u64>,
}

impl Resume {
    /// An event has come.
    pub(super) fn arrive(&mut self, seq: u64, ts: u64) {
        self.first.get_or_insert((seq, ts));
    }

    /// Whether an event was handed out before the last break.
    pub(super) fn was_handed_out(&self, topic: &str, seq: u64) -> bool {
        let resumed = self.resumed.get(topic);
        resumed.is_some_and(|&resumed| seq <= resumed)
    }

    /// An event is handed out.
    pub(super) fn hand_out(&mut self, topic: &Arc<str>, seq: u64, ts: u64) {
        self.last_ts = Some(ts);
        if let Some(position) = self.positions.get_mut(topic) {
            *position = seq.max(*position);
            return;
        }
        if self.positions.len() >= MAX_RESUMED_TOPICS {
            self.positions.clear();
        }
        self.positions.insert(topic.clone(), seq);
    }

    /// The connection is gone. What had come and was not handed out has to come again; `queued` are its times.
    pub(super) fn disconnect(&mut self, queued: impl Iterator<Item = u64>) {
        self.resumed.clone_from(&self.positions);
        if let (Some(last_ts), Some(oldest)) = (self.last_ts, queued.min()) {
            self.last_ts = Some(last_ts.min(oldest));
        }
    }

    /// Where to go on in one topic; `from` is where the subscriber began.
    pub(super) fn start_in(&self, topic: &str, from: &StartAt) -> StartAt {
        let next = self.positions.get(topic).map(|seq| seq + 1);
        let next = next.or(self.first.map(|(seq, _)| seq));
        next.map_or_else(|| from.clone(), StartAt::Seq)
    }

    /// Where to go on in several topics: never before where the subscriber began.
    pub(super) fn start(&self, from: &StartAt) -> StartAt {
        let Some((_, first_ts)) = self.first else {
            return from.clone();
        };
        let overlap = |last_ts: u64| last_ts.saturating_sub(RESUME_OVERLAP_MS);
        match (from, self.last_ts) {
            (StartAt::Earliest | StartAt::Ts(_), None) => from.clone(),
            (StartAt::Earliest, Some(last_ts)) => StartAt::Ts(overlap(last_ts)),
            (StartAt::Ts(from_ts), Some(last_ts)) => StartAt::Ts(overlap(last_ts).max(*from_ts)),
            (_, last_ts) => StartAt::Ts(overlap(last_ts.unwrap_or(first_ts)).max(first_ts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed_out(events: &[(&str, u64, u64)]) -> Resume {
        let mut resume = Resume::default();
        for &(topic, seq, ts) in events {
            resume.arrive(seq, ts);
            resume.hand_out(&topic.into(), seq, ts);
        }
        resume.disconnect(std::iter::empty());
        resume
    }

    #[test]
    fn a_subscription_that_got_nothing_begins_where_it_was_told_to() {
        let resume = Resume::default();
        for from in [StartAt::Latest, StartAt::Earliest, StartAt::Ts(7)] {
            assert_eq!(resume.start(&from), from);
            assert_eq!(resume.start_in("a", &from), from);
        }
    }

    #[test]
    fn one_topic_goes_on_behind_what_was_handed_out() {
        let mut resume = handed_out(&[("a", 4, 1_000)]);
        assert_eq!(resume.start_in("a", &StartAt::Latest), StartAt::Seq(5));
        resume = Resume::default();
        resume.arrive(4, 1_000);
        resume.disconnect([1_000].into_iter());
        assert_eq!(resume.start_in("a", &StartAt::Latest), StartAt::Seq(4));
    }

    #[test]
    fn several_topics_overlap_but_not_to_before_the_beginning() {
        let resume = handed_out(&[("a", 1, 50_000), ("b", 9, 70_000)]);
        assert_eq!(resume.start(&StartAt::Latest), StartAt::Ts(60_000));
        assert_eq!(resume.start(&StartAt::Ts(65_000)), StartAt::Ts(65_000));
        assert!(resume.was_handed_out("b", 9));
        assert!(!resume.was_handed_out("b", 10));
        assert!(!resume.was_handed_out("c", 1));

        // One topic may have come first though the other has earlier events.
        let resume = handed_out(&[("a", 1, 50_000)]);
        assert_eq!(resume.start(&StartAt::Latest), StartAt::Ts(50_000));
        assert_eq!(resume.start(&StartAt::Earliest), StartAt::Ts(40_000));
    }

    #[test]
    fn what_came_and_was_not_handed_out_comes_again() {
        let mut resume = handed_out(&[("a", 1, 50_000), ("b", 9, 90_000)]);
        resume.arrive(2, 60_000);
        resume.disconnect([60_000, 95_000].into_iter());
        assert_eq!(resume.start(&StartAt::Latest), StartAt::Ts(50_000));
        assert!(!resume.was_handed_out("a", 2));
    }

    #[test]
    fn no_more_topics_are_remembered_than_the_limit() {
        let mut resume = Resume::default();
        for number in 0..=MAX_RESUMED_TOPICS {
            resume.hand_out(&number.to_string().into(), 1, 1);
        }
        assert!(resume.positions.len() <= MAX_RESUMED_TOPICS);
    }
}
