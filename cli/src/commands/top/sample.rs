//! What `top` knows of a server at one moment, and the rates between two of them.

use crate::remote::Remote;
use prombus::GroupInfo;
use prombus_api::http::{GroupList, GroupQuery, TopicInfo, TopicList};
use serde_json::{Value, json};
use std::time::Instant;

/// Topics whose groups are asked for in one sample: those with the most events behind their name.
const MAX_TOPICS: usize = 200;

/// All topics and groups at one moment.
pub(super) struct Sample {
    at: Instant,
    topics: Vec<TopicInfo>,
    groups: Vec<GroupInfo>,
    /// Topics beyond the limit.
    left_out: usize,
}

/// What changed between two samples.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// The busiest first.
    pub(super) topics: Vec<TopicRate>,
    /// Those with the most lag first.
    pub(super) groups: Vec<GroupRate>,
    pub(super) left_out: usize,
}

#[derive(Debug)]
pub(super) struct TopicRate {
    pub(super) name: String,
    pub(super) per_second: f64,
    pub(super) events: u64,
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct GroupRate {
    pub(super) topic: String,
    pub(super) name: String,
    pub(super) per_second: f64,
    pub(super) lag: u64,
    pub(super) in_flight: u64,
    pub(super) members: usize,
    pub(super) state: GroupState,
}

/// How a group is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupState {
    CaughtUp,
    Flowing,
    /// Events wait, and none was acknowledged since the last sample.
    Stuck,
    NoMembers,
}

impl GroupState {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::CaughtUp => "caught up",
            Self::Flowing => "flowing",
            Self::Stuck => "stuck",
            Self::NoMembers => "no members",
        }
    }
}

impl Sample {
    /// Asks the server.
    #[allow(
        clippy::disallowed_methods,
        reason = "rates are of the time that passed here"
    )]
    pub(super) fn take(remote: &Remote) -> anyhow::Result<Self> {
        let TopicList { mut topics } = remote.get("/topics")?;
        topics.sort_by_key(|info| std::cmp::Reverse(info.tail_seq));
        let mut groups = Vec::new();
        for info in topics.iter().take(MAX_TOPICS) {
            let query = GroupQuery {
                topic: info.topic.clone(),
                group: None,
            };
            let list: GroupList = remote.get(&format!("/groups?{}", query.to_query()))?;
            groups.extend(list.groups);
        }
        Ok(Self {
            at: Instant::now(),
            left_out: topics.len().saturating_sub(MAX_TOPICS),
            topics,
            groups,
        })
    }
}

impl Rates {
    pub(super) fn between(before: &Sample, now: &Sample) -> Self {
        let seconds = (now.at - before.at).as_secs_f64().max(0.001);
        let mut topics: Vec<TopicRate> = now
            .topics
            .iter()
            .map(|info| {
                let earlier = before.topics.iter().find(|other| other.topic == info.topic);
                let earlier = earlier.map_or(0, |earlier| earlier.tail_seq);
                TopicRate {
                    name: info.topic.clone(),
                    per_second: info.tail_seq.saturating_sub(earlier) as f64 / seconds,
                    events: info.events,
                    bytes: info.bytes,
                }
            })
            .collect();
        topics.sort_by(|one, other| {
            let by_rate = other.per_second.total_cmp(&one.per_second);
            by_rate.then(one.name.cmp(&other.name))
        });
        let mut groups: Vec<GroupRate> = now
            .groups
            .iter()
            .map(|group| group_rate(group, before, seconds))
            .collect();
        groups.sort_by(|one, other| {
            let by_lag = other.lag.cmp(&one.lag);
            by_lag.then_with(|| (&one.topic, &one.name).cmp(&(&other.topic, &other.name)))
        });
        Self {
            topics,
            groups,
            left_out: now.left_out,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let topics = self.topics.iter().map(|topic| {
            json!({
                "topic": topic.name,
                "per_second": topic.per_second,
                "events": topic.events,
                "bytes": topic.bytes,
            })
        });
        let groups = self.groups.iter().map(|group| {
            json!({
                "topic": group.topic,
                "group": group.name,
                "acked_per_second": group.per_second,
                "lag": group.lag,
                "in_flight": group.in_flight,
                "members": group.members,
                "state": group.state.as_str(),
            })
        });
        json!({
            "topics": topics.collect::<Vec<_>>(),
            "groups": groups.collect::<Vec<_>>(),
            "topics_left_out": self.left_out,
        })
    }
}

fn group_rate(group: &GroupInfo, before: &Sample, seconds: f64) -> GroupRate {
    let earlier = before
        .groups
        .iter()
        .find(|earlier| earlier.topic == group.topic && earlier.group == group.group);
    let acked = group.counts.acked;
    let acked_before = earlier.map_or(acked, |earlier| earlier.counts.acked);
    let acked_since = acked.saturating_sub(acked_before);
    let state = if group.lag == 0 {
        GroupState::CaughtUp
    } else if group.members.is_empty() {
        GroupState::NoMembers
    } else if acked_since == 0 {
        GroupState::Stuck
    } else {
        GroupState::Flowing
    };
    GroupRate {
        topic: group.topic.to_string(),
        name: group.group.to_string(),
        per_second: acked_since as f64 / seconds,
        lag: group.lag,
        in_flight: group.in_flight,
        members: group.members.len(),
        state,
    }
}
