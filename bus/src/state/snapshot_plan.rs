//! Which topics have snapshots made of them, where to and how often.

use crate::error::InvalidField;
use crate::topic::TopicConfig;
use prombus_store::TopicInfo;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How often a snapshot is made where the topic does not say.
pub(super) const DEFAULT_INTERVAL_MS: u64 = 30_000;

/// A topic that has snapshots made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SnapshotPlan {
    pub(super) topic: Arc<str>,
    pub(super) snapshot_topic: Arc<str>,
    pub(super) interval_ms: u64,
}

/// The topics of a store that have snapshots made of them. A configuration that [`check_snapshots`] would refuse may
/// still have come about, where topics are made by their first publish; then nothing is done rather than harm.
pub(super) fn plans(topics: &[TopicInfo]) -> Vec<SnapshotPlan> {
    let wanted: Vec<SnapshotPlan> = topics.iter().filter_map(plan).collect();
    let sources: HashSet<Arc<str>> = wanted.iter().map(|plan| plan.topic.clone()).collect();
    let mut targets = HashSet::new();
    let is_sound = |plan: &SnapshotPlan| {
        !sources.contains(&plan.snapshot_topic) && targets.insert(plan.snapshot_topic.clone())
    };
    wanted.into_iter().filter(is_sound).collect()
}

/// Refuses a configuration whose snapshots would go round in circles, be made of snapshots, or be mixed up with those
/// of another topic.
pub(crate) fn check_snapshots(
    topic: &str,
    config: &TopicConfig,
    topics: &[TopicInfo],
) -> Result<(), InvalidField> {
    let Some(target) = config.snapshot_topic.as_deref() else {
        return Ok(());
    };
    let bad = |reason: String| Err(InvalidField::new("snapshot_topic", reason));
    if target == topic {
        return bad("a topic cannot be its own snapshot".to_owned());
    }
    let others = topics.iter().filter(|info| &*info.name != topic);
    let plans: HashMap<Arc<str>, Arc<str>> = others
        .filter_map(plan)
        .map(|plan| (plan.topic, plan.snapshot_topic))
        .collect();
    if plans.contains_key(target) {
        return bad(format!("{target} has a snapshot topic itself"));
    }
    for (other, other_target) in plans {
        if &*other_target == topic {
            return bad(format!("this topic is the snapshot of {other}"));
        }
        if &*other_target == target {
            return bad(format!("{target} is the snapshot of {other} already"));
        }
    }
    Ok(())
}

/// Whether a topic holds the snapshots of another.
pub(crate) fn is_snapshot_topic(topic: &str, topics: &[TopicInfo]) -> bool {
    let mut plans = topics.iter().filter_map(plan);
    plans.any(|plan| &*plan.snapshot_topic == topic)
}

fn plan(info: &TopicInfo) -> Option<SnapshotPlan> {
    // Most topics have none, and need not be taken apart to see that.
    if !info.options.attributes.contains("snapshot_topic") {
        return None;
    }
    let config = TopicConfig::of(info);
    Some(SnapshotPlan {
        topic: info.name.clone(),
        snapshot_topic: config.snapshot_topic?.into(),
        interval_ms: config.snapshot_interval_ms.unwrap_or(DEFAULT_INTERVAL_MS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, target: Option<&str>) -> TopicInfo {
        let config = config(target);
        TopicInfo {
            name: name.into(),
            options: config.to_options(),
            incarnation: 1,
            first_seq: 1,
            tail_seq: 0,
            events: 0,
            bytes: 0,
        }
    }

    fn config(target: Option<&str>) -> TopicConfig {
        TopicConfig {
            snapshot_topic: target.map(str::to_owned),
            ..TopicConfig::default()
        }
    }

    #[test]
    fn circles_chains_and_shared_snapshots_are_refused() {
        let topics = [
            topic("a", Some("a.s")),
            topic("a.s", None),
            topic("b", None),
        ];
        let refused = |name: &str, target| check_snapshots(name, &config(Some(target)), &topics);
        for (name, target) in [("b", "b"), ("b", "a"), ("a.s", "x"), ("b", "a.s")] {
            assert!(refused(name, target).is_err(), "{name} to {target}");
        }
        assert!(refused("b", "b.s").is_ok());
        assert!(
            refused("a", "a.s").is_ok(),
            "what is there may be said again"
        );
        assert!(check_snapshots("a.s", &config(None), &topics).is_ok());
    }

    #[test]
    fn only_what_is_sound_is_planned() {
        let topics = [
            topic("a", Some("s")),
            topic("b", Some("s")),
            topic("c", Some("d")),
            topic("d", Some("c")),
            topic("e", Some("e")),
            topic("f", Some("b")),
            topic("g", None),
        ];
        let planned = plans(&topics);
        let names: Vec<&str> = planned.iter().map(|plan| &*plan.topic).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(planned[0].interval_ms, 30_000);
    }
}
