//! Conversions of group information from the bus to the wire. The two are alike and written apart on purpose, so that the
//! bus may change what it knows of a group without a change of the wire.

use prombus::{Cursor, Explanation, GroupInfo, LaneInfo, MemberInfo, Ordering, Reason};
use prombus_api::http as wire;
use prombus_api::options::Ordering as WireOrdering;

pub(super) fn wire_group(info: GroupInfo) -> wire::GroupInfo {
    let counts = info.counts;
    wire::GroupInfo {
        topic: info.topic.to_string(),
        group: info.group.to_string(),
        created_ms: info.created_ms,
        cursor: info.cursor,
        tail: info.tail,
        lag: info.lag,
        skipped: info.skipped,
        ack_timeout_ms: info.ack_timeout_ms,
        max_attempts: info.max_attempts,
        ordering: match info.ordering {
            Ordering::None => WireOrdering::None,
            Ordering::Key => WireOrdering::Key,
        },
        paused: info.paused_since_ms.is_some(),
        paused_since_ms: info.paused_since_ms,
        partitions: info.partitions,
        members: info.members.into_iter().map(wire_member).collect(),
        in_flight: info.in_flight as u64,
        waiting: info.waiting as u64,
        oldest_in_flight_ms: info.oldest_in_flight_ms,
        counts: wire::GroupCounts {
            delivered: counts.delivered,
            redelivered: counts.redelivered,
            returned: counts.returned,
            acked: counts.acked,
            nacked: counts.nacked,
            expired: counts.expired,
            dead_lettered: counts.dead_lettered,
            given_up: counts.given_up,
            filtered: counts.filtered,
        },
    }
}

pub(super) fn wire_cursor(cursor: Cursor, group: &str) -> wire::Cursor {
    wire::Cursor {
        topic: cursor.topic.to_string(),
        group: group.to_owned(),
        last_id: cursor.last_id,
        last_ts: cursor.last_ts,
        last_seq: cursor.last_seq,
    }
}

pub(super) fn wire_explanation(explanation: Explanation) -> wire::Explanation {
    wire::Explanation {
        sentence: explanation.sentence,
        reason: match explanation.reason {
            Reason::CaughtUp => wire::Reason::CaughtUp,
            Reason::NoMembers => wire::Reason::NoMembers,
            Reason::Paused => wire::Reason::Paused,
            Reason::InFlightCapReached => wire::Reason::InFlightCapReached,
            Reason::WindowFull => wire::Reason::WindowFull,
            Reason::WaitingForBackoff => wire::Reason::WaitingForBackoff,
            Reason::KeyLanesBlocked => wire::Reason::KeyLanesBlocked,
            Reason::AllInFlight => wire::Reason::AllInFlight,
            Reason::Flowing => wire::Reason::Flowing,
        },
        lanes: explanation.lanes.into_iter().map(wire_lane).collect(),
        next_retry_ms: explanation.next_retry_ms,
        damage: Vec::new(),
        node: explanation.node,
        group: wire_group(explanation.group),
    }
}

fn wire_member(member: MemberInfo) -> wire::MemberInfo {
    wire::MemberInfo {
        name: member.name.to_string(),
        paused: member.paused,
        node: member.node.map(|node| node.to_string()),
        in_flight: member.in_flight as u64,
        max_in_flight: member.max_in_flight as u64,
        room: member.room as u64,
        oldest_in_flight_ms: member.oldest_in_flight_ms,
        partitions: member.partitions,
    }
}

fn wire_lane(lane: LaneInfo) -> wire::LaneInfo {
    wire::LaneInfo {
        blocked_by_seq: lane.blocked_by_seq,
        blocked_by_id: lane.blocked_by_id,
        key: lane.key,
        waiting: lane.waiting as u64,
        due_ms: lane.due_ms,
    }
}
