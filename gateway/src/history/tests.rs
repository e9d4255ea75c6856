//! Readings in, samples out.

use super::*;

fn topic(name: &str, incarnation: u64, tail_seq: u64) -> TopicReading {
    TopicReading {
        topic: name.into(),
        incarnation,
        tail_seq,
    }
}

fn group(name: &str, acked: u64, lag: u64) -> GroupReading {
    GroupReading {
        topic: "t".into(),
        group: name.into(),
        is_ephemeral: name == "tail",
        counts: Counts {
            delivered: acked + 1,
            acked,
            ..Counts::default()
        },
        lag,
    }
}

fn reading(at: u64, topics: Vec<TopicReading>, groups: Vec<GroupReading>) -> Reading {
    Reading {
        now_ms: at * HISTORY_INTERVAL_MS,
        topics,
        groups: Some(groups),
        ..Reading::default()
    }
}

#[test]
fn what_was_there_before_the_start_is_not_counted() {
    let history = History::default();
    history.take(reading(
        1,
        vec![topic("t", 1, 100)],
        vec![group("g", 0, 100)],
    ));
    assert_eq!(history.samples_after(0), []);
    history.take(reading(
        2,
        vec![topic("t", 1, 103), topic("u", 2, 4)],
        vec![group("g", 5, 98)],
    ));
    let samples = history.samples_after(0);
    assert_eq!(samples.len(), 1);
    let sample = samples[0];
    assert_eq!((sample.published, sample.acked, sample.lag), (7, 5, 98));
    assert_eq!(history.topic("t"), [3]);
    assert_eq!(history.per_minute().get("u").copied(), Some(4));
    assert_eq!(history.samples_after(sample.ts), []);
}

#[test]
fn a_topic_and_a_group_that_were_made_again_count_from_nothing() {
    let history = History::default();
    history.take(reading(
        1,
        vec![topic("t", 1, 100)],
        vec![group("g", 50, 0)],
    ));
    history.take(reading(2, vec![topic("t", 2, 3)], vec![group("g", 2, 0)]));
    let sample = history.samples_after(0)[0];
    assert_eq!((sample.published, sample.acked), (3, 0));
}

#[test]
fn ephemeral_groups_have_no_lag_here() {
    let history = History::default();
    history.take(reading(1, vec![], vec![group("tail", 0, 9)]));
    history.take(reading(2, vec![], vec![group("tail", 4, 9)]));
    let sample = history.samples_after(0)[0];
    assert_eq!((sample.lag, sample.acked), (0, 4));
    assert_eq!(history.group("t", "tail"), Vec::<u64>::new());
}

#[test]
fn rings_forget_the_oldest_and_topics_that_went_quiet() {
    let history = History::default();
    for at in 0..=HISTORY_SAMPLES as u64 + 100 {
        let tail = at.min(7);
        history.take(reading(at, vec![topic("t", 1, tail)], vec![]));
    }
    let samples = history.samples_after(0);
    assert_eq!(samples.len(), HISTORY_SAMPLES);
    assert_eq!(samples[0].ts, 101 * HISTORY_INTERVAL_MS);
    assert_eq!(history.topic("t"), Vec::<u64>::new());
}

#[test]
fn histories_of_topics_and_groups_are_limited_in_number() {
    let history = History::default();
    history.take(reading(0, vec![], vec![]));
    let topics = (0..MAX_TOPIC_HISTORIES + 10).map(|at| topic(&format!("t{at}"), 1, 1));
    let groups = (0..MAX_GROUP_HISTORIES + 10).map(|at| group(&format!("g{at}"), 0, 1));
    history.take(reading(1, topics.collect(), groups.collect()));
    let recorded = history.lock();
    assert_eq!(recorded.topics.len(), MAX_TOPIC_HISTORIES);
    assert_eq!(recorded.groups.len(), MAX_GROUP_HISTORIES);
    let all = recorded
        .samples
        .iter()
        .last()
        .map(|sample| sample.published);
    assert_eq!(
        all,
        Some(MAX_TOPIC_HISTORIES as u64 + 10),
        "the sum has them all"
    );
}

#[test]
fn a_lag_grows_when_it_never_falls() {
    let history = History::default();
    let mut at = 0;
    let mut slot = |grows: u64, wavers: u64| {
        for _ in 0..SLOT_SAMPLES {
            let groups = vec![group("grows", 0, grows), group("wavers", 0, wavers)];
            history.take(reading(at, vec![], groups));
            at += 1;
        }
    };
    for turn in 0..10 {
        slot(10 + turn * 5, 10 + turn % 2 * 5);
    }
    let growing = history.growing();
    assert_eq!(growing.len(), 1, "{growing:?}");
    let ((_, name), growth) = &growing[0];
    assert_eq!(&**name, "grows");
    assert!(
        growth.to > growth.from && growth.over_ms >= 60_000,
        "{growth:?}"
    );
}
