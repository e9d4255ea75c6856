//! Why nothing is flowing to a group, in a sentence and as data.

use crate::rfc3339::rfc3339;
use prombus_interface::{Explanation, GroupInfo, LaneInfo, MemberInfo, Reason};

/// How many blocked lanes an explanation names.
pub(crate) const MAX_REPORTED_LANES: usize = 20;

/// What the decision needs beside the group's info.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    /// Unsettled events that could be handed out now.
    pub(crate) ready: usize,
    /// Positions not yet read.
    pub(crate) unread: u64,
    /// Events behind others of their key.
    pub(crate) blocked_by_key: usize,
    pub(crate) window_left: usize,
    pub(crate) next_retry_ms: Option<u64>,
}

/// What is known of a group by its record. `node` is the node that serves it and did not answer.
pub(crate) fn of_stored(group: GroupInfo, node: Option<String>, now_ms: u64) -> Explanation {
    let situation = Situation {
        ready: 0,
        unread: group.lag,
        blocked_by_key: 0,
        window_left: 1,
        next_retry_ms: None,
    };
    let reason = reason(&group, &situation);
    let sentence = match (&node, reason) {
        (Some(node), Reason::NoMembers) => format!(
            "group {} of topic {} has {} to go and is served by the node {node}, which does not answer.",
            group.group,
            group.topic,
            events(group.lag)
        ),
        _ => sentence(reason, &group, &situation, &[], now_ms),
    };
    Explanation {
        sentence,
        reason,
        lanes: Vec::new(),
        next_retry_ms: None,
        damage: Vec::new(),
        panicked: None,
        node,
        group,
    }
}

/// Finds the first thing that holds events back.
pub(crate) fn reason(group: &GroupInfo, situation: &Situation) -> Reason {
    let active = || group.members.iter().filter(|member| !member.paused);
    if group.paused_since_ms.is_some() {
        Reason::Paused
    } else if group.lag == 0 {
        Reason::CaughtUp
    } else if group.members.is_empty() {
        Reason::NoMembers
    } else if active().next().is_none() {
        Reason::Paused
    } else if active().all(|member| member.room == 0) {
        Reason::InFlightCapReached
    } else if situation.ready > 0 {
        Reason::Flowing
    } else if situation.unread > 0 && situation.window_left == 0 {
        Reason::WindowFull
    } else if situation.unread > 0 {
        Reason::Flowing
    } else if situation.blocked_by_key > 0 {
        Reason::KeyLanesBlocked
    } else if group.waiting > 0 {
        Reason::WaitingForBackoff
    } else {
        Reason::AllInFlight
    }
}

/// Says it in a sentence.
pub(crate) fn sentence(
    reason: Reason,
    group: &GroupInfo,
    situation: &Situation,
    lanes: &[LaneInfo],
    now_ms: u64,
) -> String {
    let name = format!("group {} of topic {}", group.group, group.topic);
    let lag = events(group.lag);
    match reason {
        Reason::CaughtUp => format!("{name} is caught up: everything is settled."),
        Reason::NoMembers => format!("{name} has {lag} to go, but it has no members."),
        Reason::Paused => match group.paused_since_ms {
            Some(since_ms) => format!(
                "{name} was paused at {} and has {lag} to go; resume it with \
                 `prombus group resume {} {}` or POST /groups/resume.",
                rfc3339(since_ms),
                group.topic,
                group.group
            ),
            None => {
                let are = are(&group.members);
                // `POST /pull` holds back its member from one request to the next.
                format!(
                    "{name} has {lag} to go, but {are} paused (one that pulls over HTTP is, until its next request)."
                )
            }
        },
        Reason::InFlightCapReached => {
            format!(
                "{name} has {lag} to go, but no member has room: {}.",
                held_by(&group.members)
            )
        }
        Reason::WindowFull => format!(
            "{name} keeps track of as many unsettled events as it may; it reads on when some are settled."
        ),
        Reason::WaitingForBackoff => format!(
            "{name}: {} failed and {} for the next delivery{}.",
            events(group.waiting),
            if group.waiting == 1 { "waits" } else { "wait" },
            until(situation.next_retry_ms, now_ms)
        ),
        Reason::KeyLanesBlocked => format!(
            "{name}: {} wait behind earlier events of their key{}.",
            situation.blocked_by_key,
            blocked_by(lanes, now_ms)
        ),
        Reason::AllInFlight => {
            let held = held_by(&group.members);
            format!("{name}: all that is left is in the hands of members: {held}.")
        }
        // Limits of connections are known to the server alone, which says so itself.
        Reason::Flowing | Reason::RateLimited => format!("{name} is flowing, {lag} to go."),
    }
}

fn events(count: u64) -> String {
    match count {
        1 => "1 event".to_owned(),
        _ => format!("{count} events"),
    }
}

fn are(members: &[MemberInfo]) -> String {
    match members {
        [one] => format!("its only member {} is", one.name),
        _ => format!("all its {} members are", members.len()),
    }
}

fn held_by(members: &[MemberInfo]) -> String {
    const NAMED: usize = 5;
    let held = |member: &MemberInfo| {
        let taken = member.max_in_flight - member.room.min(member.max_in_flight);
        format!("{} holds {taken} of {}", member.name, member.max_in_flight)
    };
    let mut named: Vec<String> = members.iter().take(NAMED).map(held).collect();
    if members.len() > NAMED {
        named.push(format!("{} more", members.len() - NAMED));
    }
    named.join(", ")
}

fn blocked_by(lanes: &[LaneInfo], now_ms: u64) -> String {
    let Some(lane) = lanes.first() else {
        return String::new();
    };
    let id = match &lane.blocked_by_id {
        Some(id) => format!(" ({id})"),
        None => String::new(),
    };
    let fate = match lane.due_ms {
        Some(_) => format!(
            "which failed and is tried again{}",
            until(lane.due_ms, now_ms)
        ),
        None => "which is under way".to_owned(),
    };
    format!(
        ", the first of them behind seq {}{id}, {fate}",
        lane.blocked_by_seq
    )
}

fn until(due_ms: Option<u64>, now_ms: u64) -> String {
    match due_ms {
        Some(due_ms) => format!(" in {} ms", due_ms.saturating_sub(now_ms)),
        None => String::new(),
    }
}
