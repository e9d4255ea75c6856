//! `GET /attention`: what an operator should look at, gathered from the store, the groups, the dead letters and the
//! limits, in sentences. A caller hears of the topics and groups that its token lets it see.

use super::call::Call;
use super::groups::explained;
use super::message::Response;
use super::reply;
use super::status::sees_everything;
use crate::api_error::ApiError;
use prombus::{Explanation, GroupMetrics, ProjectorInfo, Reason, TopicInfo, is_dead_letter_topic};
use prombus_api::http::{Attention, Finding, FindingKind, Level};

/// The most findings of a reply.
const MAX_FINDINGS: usize = 100;
/// The most groups that are asked why they do not get on, those that lag most first.
const MAX_EXPLAINED: usize = 50;
/// The most dead letters of a topic that are counted.
const MAX_COUNTED_LETTERS: u64 = 10_000;
/// A group whose oldest event is younger than this has not been waiting long enough to worry.
const PATIENCE_MS: u64 = 10_000;

pub(super) async fn attention(call: Call) -> Result<Response, ApiError> {
    let mut findings = Vec::new();
    if sees_everything(&call) {
        findings.extend(store_findings(&call));
        findings.extend(rate_limits(&call));
        findings.extend(projectors(&call));
    }
    findings.extend(stuck_groups(&call).await?);
    findings.extend(growing_lags(&call, &findings));
    findings.extend(dead_letters(&call).await?);
    findings.sort_by_key(|finding| finding.level);
    findings.truncate(MAX_FINDINGS);
    Ok(reply::json(&Attention {
        now_ms: call.gateway().now_ms(),
        findings,
    }))
}

fn finding(kind: FindingKind, level: Level, sentence: String) -> Finding {
    Finding {
        kind,
        level,
        sentence,
        topic: None,
        group: None,
        reason: None,
    }
}

fn store_findings(call: &Call) -> Vec<Finding> {
    let bus = &call.gateway().bus;
    let status = bus.store().status();
    let failed = status.failed.map(|cause| {
        let sentence = format!("The store takes no writes: {cause}");
        finding(FindingKind::StoreFailing, Level::Error, sentence)
    });
    let unwritten = bus.unwritten_groups().latest.map(|cause| {
        let sentence = format!("Acknowledgements cannot be written: {cause}");
        finding(FindingKind::StoreFailing, Level::Error, sentence)
    });
    let damage = (status.damage_count > 0).then(|| {
        let newest = status.damage.last();
        let newest = newest.map_or(String::new(), |damage| format!(" The newest: {damage}"));
        let sentence = match status.damage_count {
            1 => format!("Something in the store is damaged.{newest}"),
            count => format!("{count} places in the store are damaged.{newest}"),
        };
        finding(FindingKind::Damage, Level::Error, sentence)
    });
    failed.into_iter().chain(unwritten).chain(damage).collect()
}

fn rate_limits(call: &Call) -> Option<Finding> {
    let samples = call.gateway().history.samples_after(0);
    let limited: u64 = samples.iter().map(|sample| sample.rate_limited).sum();
    let sentence = format!(
        "Rate limits rejected publishes or throttled deliveries {limited} times in the last 15 minutes."
    );
    (limited > 0).then(|| finding(FindingKind::RateLimited, Level::Notice, sentence))
}

/// Projectors that do not go on, and those that could make nothing of events since the server was started.
fn projectors(call: &Call) -> Vec<Finding> {
    let all = call.gateway().bus.projectors().into_iter();
    let findings = all.filter_map(|ProjectorInfo { name, input, status, .. }| {
        let (level, sentence) = match (status.last_error, status.last_rejection) {
            (Some(error), _) => {
                let sentence = format!("Projector {name} does not go on: {error}");
                (Level::Error, sentence)
            }
            (None, Some(why)) => {
                let count = status.rejected;
                let sentence = format!("Projector {name} has rejected {count} events of {input}, the last because: {why}");
                (Level::Notice, sentence)
            }
            (None, None) => return None,
        };
        Some(Finding {
            topic: Some(input.to_string()),
            ..finding(FindingKind::Projector, level, sentence)
        })
    });
    findings.collect()
}

/// Groups with unsettled events that do not get on, and why.
async fn stuck_groups(call: &Call) -> Result<Vec<Finding>, ApiError> {
    let gateway = call.gateway();
    let mut samples = gateway.bus.group_metrics().await?;
    samples.retain(|sample| may_be_stuck(call, sample));
    samples.sort_by_key(|sample| std::cmp::Reverse(sample.lag));
    samples.truncate(MAX_EXPLAINED);
    let mut findings = Vec::new();
    for sample in samples {
        let Ok(explanation) = explained(gateway, &sample.topic, &sample.group).await else {
            continue;
        };
        if !is_stuck(&explanation) {
            continue;
        }
        findings.push(Finding {
            kind: FindingKind::StuckGroup,
            level: Level::Warning,
            sentence: explanation.sentence,
            topic: Some(sample.topic.to_string()),
            group: Some(sample.group.to_string()),
            reason: Some(explanation.reason),
        });
    }
    Ok(findings)
}

fn may_be_stuck(call: &Call, sample: &GroupMetrics) -> bool {
    !sample.is_ephemeral
        && sample.lag > 0
        && sample.oldest_unacked_ms >= PATIENCE_MS
        && call.may_look(&sample.topic, Some(&sample.group))
}

fn is_stuck(explanation: &Explanation) -> bool {
    match explanation.reason {
        Reason::CaughtUp | Reason::Flowing => false,
        // Members hold all there is; that is only odd where one has held on for long.
        Reason::AllInFlight => explanation.group.oldest_in_flight_ms >= PATIENCE_MS,
        Reason::NoMembers
        | Reason::Paused
        | Reason::InFlightCapReached
        | Reason::WindowFull
        | Reason::WaitingForBackoff
        | Reason::KeyLanesBlocked
        | Reason::RateLimited => true,
    }
}

/// Groups that fall behind though nothing holds them up.
fn growing_lags(call: &Call, reported: &[Finding]) -> Vec<Finding> {
    let is_told = |topic: &str, group: &str| {
        reported.iter().any(|finding| {
            finding.topic.as_deref() == Some(topic) && finding.group.as_deref() == Some(group)
        })
    };
    let growing = call.gateway().history.growing();
    let visible = growing
        .into_iter()
        .filter(|((topic, group), _)| call.may_look(topic, Some(group)) && !is_told(topic, group));
    visible
        .map(|((topic, group), growth)| Finding {
            topic: Some(topic.to_string()),
            group: Some(group.to_string()),
            ..finding(
                FindingKind::GrowingLag,
                Level::Warning,
                format!(
                    "Group {group} of topic {topic} falls behind: its lag grew from {} to {} in {} s.",
                    growth.from,
                    growth.to,
                    growth.over_ms / 1_000
                ),
            )
        })
        .collect()
}

/// Dead letters that were neither redriven nor removed.
async fn dead_letters(call: &Call) -> Result<Vec<Finding>, ApiError> {
    let bus = &call.gateway().bus;
    let mut findings = Vec::new();
    for letters in bus.topics() {
        let is_visible = is_dead_letter_topic(&letters.name) && call.may_look(&letters.name, None);
        if !is_visible || letters.events == 0 {
            continue;
        }
        let open = open_letters(call, &letters).await?;
        let topic = letters.name.strip_prefix("dlq.").unwrap_or(&letters.name);
        let sentence = match open {
            0 => continue,
            1 => format!("One event of topic {topic} is a dead letter."),
            MAX_COUNTED_LETTERS => {
                format!("{MAX_COUNTED_LETTERS} events of topic {topic} or more are dead letters.")
            }
            count => format!("{count} events of topic {topic} are dead letters."),
        };
        findings.push(Finding {
            topic: Some(topic.to_owned()),
            ..finding(FindingKind::DeadLetters, Level::Warning, sentence)
        });
    }
    Ok(findings)
}

/// How many dead letters were neither redriven nor removed, up to a limit.
async fn open_letters(call: &Call, letters: &TopicInfo) -> Result<u64, ApiError> {
    let marks = call.gateway().bus.dead_letter_marks(&letters.name).await?;
    let newest = (letters.first_seq..=letters.tail_seq).rev();
    let open = newest
        .take(MAX_COUNTED_LETTERS as usize)
        .filter(|seq| !marks.is_removed(*seq) && !marks.is_redriven(*seq));
    Ok((open.count() as u64).min(letters.events))
}
