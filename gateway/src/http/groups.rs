//! Groups: `/groups`, `/cursors`, `/lag` and `/explain`.

use super::call::{Call, forbidden};
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::gateway::Gateway;
use prombus::{
    Explanation, Filter, GroupConfig, GroupInfo, Pace, Reason, SeekEffect, ShadowOptions,
};
use prombus_api::Code;
use prombus_api::http::{
    Body as _, CursorList, GroupChange, GroupList, GroupQuery, NamedGroup, Pace as WirePace,
    PageQuery, Seek, SeekReply, Shadow, ShadowReply,
};

/// The most findings of damage that an explanation shows.
const MAX_DAMAGE_SHOWN: usize = 20;

/// The groups of a topic that the caller may know of.
pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    let query = call.query()?;
    let page = PageQuery::parse(&query)?;
    if page.limit.is_some() {
        let named = (query.get("topic"), query.get("group"));
        return super::pages::groups(&call, &page, named).await;
    }
    let wanted = GroupQuery::parse(&query)?;
    let groups = visible(&call, &wanted).await?;
    let topic = wanted.topic;
    Ok(reply::json(&GroupList { topic, groups }))
}

/// Changes what belongs to a group and not to its members.
pub(super) async fn change(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let wanted = GroupChange::parse(&body)?;
    let (topic, group) = (wanted.topic, wanted.group);
    call.allow(Action::Admin, &topic, Some(&group))?;
    call.known(&topic)?;
    let config = GroupConfig {
        max_attempts: wanted.max_attempts,
        ordering: wanted.ordering,
        filter: wanted.filter.map(Filter::Fields),
    };
    let bus = &call.gateway().bus;
    bus.configure_group(&topic, &group, &config).await?;
    Ok(reply::json(&bus.group(&topic, &group).await?))
}

/// Stops deliveries to all members of a group.
pub(super) async fn pause(mut call: Call) -> Result<Response, ApiError> {
    let NamedGroup { topic, group } = administered(&mut call).await?;
    let info = call.gateway().bus.pause_group(&topic, &group).await?;
    Ok(reply::json(&info))
}

/// Lets a paused group go on.
pub(super) async fn resume(mut call: Call) -> Result<Response, ApiError> {
    let NamedGroup { topic, group } = administered(&mut call).await?;
    let info = call.gateway().bus.resume_group(&topic, &group).await?;
    Ok(reply::json(&info))
}

pub(super) async fn remove(call: Call) -> Result<Response, ApiError> {
    let wanted = GroupQuery::parse(&call.query()?)?;
    let group = named(&wanted)?;
    call.allow(Action::Admin, &wanted.topic, Some(group))?;
    let gateway = call.gateway();
    gateway.bus.remove_group(&wanted.topic, group).await?;
    gateway.metrics.forget_group(&wanted.topic, group);
    Ok(reply::nothing())
}

/// Where the groups of a topic are.
pub(super) async fn cursors(call: Call) -> Result<Response, ApiError> {
    let wanted = GroupQuery::parse(&call.query()?)?;
    let mut cursors = Vec::new();
    for info in visible(&call, &wanted).await? {
        cursors.push(call.gateway().bus.cursor(&info.topic, &info.group).await?);
    }
    Ok(reply::json(&CursorList {
        topic: wanted.topic,
        cursors,
    }))
}

/// Sets a group's cursor, or says what that would do.
pub(super) async fn seek(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let wanted = Seek::parse(&body)?;
    let (topic, group) = (wanted.topic, wanted.group);
    call.allow(Action::Admin, &topic, Some(&group))?;
    call.known(&topic)?;
    let bus = &call.gateway().bus;
    let effect = if wanted.dry_run {
        bus.seek_dry_run(&topic, &group, wanted.to).await?
    } else {
        bus.seek(&topic, &group, wanted.to).await?
    };
    let named = NamedGroup { topic, group };
    Ok(seek_reply(named, effect, wanted.dry_run))
}

/// Sets a group's cursor back to where it was before it was last set.
pub(super) async fn undo_seek(mut call: Call) -> Result<Response, ApiError> {
    let named = administered(&mut call).await?;
    let bus = &call.gateway().bus;
    let effect = bus.undo_seek(&named.topic, &named.group).await?;
    Ok(seek_reply(named, effect, false))
}

/// Makes a throwaway group that is fed a part of the topic again.
pub(super) async fn shadow(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let wanted = Shadow::parse(&body)?;
    call.allow(Action::Subscribe, &wanted.topic, Some(&wanted.group))?;
    call.known(&wanted.topic)?;
    let defaults = ShadowOptions::default();
    let options = ShadowOptions {
        from: wanted.start.unwrap_or(defaults.from),
        to: wanted.to,
        pace: match wanted.pace {
            None | Some(WirePace::Original) => Pace::Original,
            Some(WirePace::Max) => Pace::Max,
            Some(WirePace::Times(factor)) => Pace::Times(factor),
        },
        ttl_ms: wanted.ttl.map_or(defaults.ttl_ms, |ttl| ttl.ms),
    };
    let bus = &call.gateway().bus;
    let made = bus.shadow_group(&wanted.topic, &wanted.group, &options);
    let made = made.await?;
    Ok(reply::json(&ShadowReply {
        topic: made.topic.to_string(),
        group: made.group.to_string(),
        original: made.original.to_string(),
        from_seq: made.from_seq,
        to_seq: made.to_seq,
        ttl_ms: made.ttl_ms,
    }))
}

fn seek_reply(named: NamedGroup, effect: SeekEffect, dry_run: bool) -> Response {
    reply::json(&SeekReply {
        topic: named.topic,
        group: named.group,
        dry_run,
        effect,
    })
}

/// The group that the body names, where the caller may change it.
async fn administered(call: &mut Call) -> Result<NamedGroup, ApiError> {
    let body = call.json().await?;
    let named = NamedGroup::parse(&body)?;
    call.allow(Action::Admin, &named.topic, Some(&named.group))?;
    call.known(&named.topic)?;
    Ok(named)
}

pub(super) async fn lag(call: Call) -> Result<Response, ApiError> {
    let wanted = GroupQuery::parse(&call.query()?)?;
    let group = named(&wanted)?;
    call.allow_looking(&wanted.topic, Some(group))?;
    call.known(&wanted.topic)?;
    let lag = call.gateway().bus.lag(&wanted.topic, group).await?;
    Ok(reply::json(&lag))
}

/// Why nothing is flowing.
pub(super) async fn explain(call: Call) -> Result<Response, ApiError> {
    let wanted = GroupQuery::parse(&call.query()?)?;
    let group = named(&wanted)?;
    call.allow_looking(&wanted.topic, Some(group))?;
    call.known(&wanted.topic)?;
    let gateway = call.gateway();
    let mut explanation = explained(gateway, &wanted.topic, group).await?;
    let findings = gateway.bus.store().status().damage;
    let of_topic = findings
        .iter()
        .filter(|damage| damage.concerns(&wanted.topic));
    explanation.damage = of_topic
        .take(MAX_DAMAGE_SHOWN)
        .map(|damage| damage.about(&wanted.topic).to_string())
        .collect();
    Ok(reply::json(&explanation))
}

/// What the bus says of a group, and what the limits add to it.
pub(super) async fn explained(
    gateway: &Gateway,
    topic: &str,
    group: &str,
) -> Result<Explanation, ApiError> {
    let mut explanation = gateway.bus.explain(topic, group).await?;
    let now_ms = gateway.monotonic_ms();
    let is_throttled = gateway.throttled.contains(topic, group, now_ms);
    if is_throttled && looks_delivered(explanation.reason) {
        explanation.reason = Reason::RateLimited;
        explanation.sentence = format!(
            "group {group} of topic {topic} is throttled by the delivery limit of its members' connections (limits.conn_delivery)."
        );
    }
    Ok(explanation)
}

/// Whether events are with members, as far as the bus knows: they may still wait for a limit to let them through.
fn looks_delivered(reason: Reason) -> bool {
    match reason {
        Reason::InFlightCapReached | Reason::AllInFlight | Reason::WindowFull | Reason::Flowing => {
            true
        }
        Reason::CaughtUp
        | Reason::NoMembers
        | Reason::Paused
        | Reason::WaitingForBackoff
        | Reason::KeyLanesBlocked
        | Reason::RateLimited => false,
    }
}

fn named(wanted: &GroupQuery) -> Result<&str, ApiError> {
    let missing = || ApiError::new(Code::BadFrame, "group: missing");
    wanted.group.as_deref().ok_or_else(missing)
}

/// The group that is named, or all of the topic, as far as the caller may know of them.
async fn visible(call: &Call, wanted: &GroupQuery) -> Result<Vec<GroupInfo>, ApiError> {
    let (topic, group) = (wanted.topic.as_str(), wanted.group.as_deref());
    call.check(topic, group)?;
    let bus = &call.gateway().bus;
    if let Some(group) = group {
        call.allow_looking(topic, Some(group))?;
        call.known(topic)?;
        return Ok(vec![bus.group(topic, group).await?]);
    }
    let may_see = call.may_see(topic);
    if may_see {
        call.known(topic)?;
    }
    let mut groups = match bus.groups(topic).await {
        Ok(groups) => groups,
        // Without rights the caller does not learn whether it exists.
        Err(_) if !may_see => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    groups.retain(|info| call.may_look(topic, Some(&info.group)));
    if groups.is_empty() && !may_see {
        Err(forbidden(Action::Subscribe, topic, None))
    } else {
        Ok(groups)
    }
}
