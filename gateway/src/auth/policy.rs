//! Policies: rules that allow or deny, of which the first match decides. What no
//! rule matches is denied.
//!
//! A question names an action, a topic, and the group where there is one. A rule that names groups matches only
//! questions about a matching group; publishing knows no groups, so there they do not matter.
//!
//! Subscribing to a pattern follows topics that are yet to come, so it is a question about every topic that the
//! pattern can match: it is allowed only where [`Policy::covers`] says [`Coverage::All`]. Where only a part is allowed
//! it is rejected as `forbidden`, rather than quietly granting less.

mod coverage;
mod overlap;
mod scopes;
#[cfg(test)]
mod tests;

pub use coverage::Coverage;

use prombus::Pattern;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use thiserror::Error;

/// The most patterns that the rules of one policy may have together. It bounds what a question costs.
const MAX_PATTERNS: usize = 1_024;

/// Rules in the order in which they are matched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it answers.
    pub effect: Effect,
    /// What it is about.
    pub action: RuleAction,
    /// The topics it is about.
    #[serde(deserialize_with = "topic_patterns")]
    pub topics: Vec<Pattern>,
    /// The groups it is about; all where this is left out.
    #[serde(default, deserialize_with = "group_patterns")]
    pub groups: Option<Vec<Pattern>>,
}

/// What a rule answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

/// An action on a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Write events.
    Publish,
    /// Read events: subscriptions, replay, export, server-sent events, snapshots.
    Subscribe,
    /// Change or remove the topic or its groups.
    Admin,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    /// Writing events.
    Publish,
    /// Reading events.
    Subscribe,
    /// Changing topics and groups.
    Admin,
    /// All of them.
    #[serde(rename = "*")]
    Any,
}

/// A policy cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid policy: {reason}")]
pub struct BadPolicy {
    /// What is wrong with it.
    pub reason: String,
}

impl Policy {
    /// A policy of these rules.
    pub fn new(rules: Vec<Rule>) -> Result<Self, BadPolicy> {
        let patterns: usize = rules.iter().map(Rule::patterns).sum();
        if patterns > MAX_PATTERNS {
            let reason = format!("it has {patterns} patterns, {MAX_PATTERNS} are allowed");
            return Err(BadPolicy { reason });
        }
        Ok(Self { rules })
    }

    /// Everything is allowed.
    pub fn allow_all() -> Self {
        Self::from_scopes(["publish:**", "subscribe:**", "admin:**"]).unwrap_or_default()
    }

    /// Reads a list of rules, or an object with one as `rules`. A rule that cannot be understood spoils all, because
    /// it may have been one that denies.
    pub fn from_json(json: &str) -> Result<Self, BadPolicy> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Wrapped {
            rules: Vec<Rule>,
        }
        let rules = if json.trim_start().starts_with('{') {
            serde_json::from_str(json).map(|wrapped: Wrapped| wrapped.rules)
        } else {
            serde_json::from_str(json)
        };
        Self::new(rules.map_err(|error| BadPolicy {
            reason: error.to_string(),
        })?)
    }

    /// Whether this may be done with this topic, as this group.
    pub fn may(&self, action: Action, topic: &str, group: Option<&str>) -> bool {
        let first = self
            .about(action, group)
            .find(|rule| rule.topics.iter().any(|pattern| pattern.matches(topic)));
        first.is_some_and(|rule| rule.effect == Effect::Allow)
    }

    /// The rules that may answer such a question, whatever the topic.
    fn about<'a>(
        &'a self,
        action: Action,
        group: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Rule> {
        self.rules
            .iter()
            .filter(move |rule| rule.action.has(action) && rule.has_group(action, group))
    }
}

impl Rule {
    fn has_group(&self, action: Action, group: Option<&str>) -> bool {
        match (&self.groups, group) {
            (None, _) => true,
            (Some(_), _) if action == Action::Publish => true,
            (Some(patterns), Some(group)) => patterns.iter().any(|pattern| pattern.matches(group)),
            (Some(_), None) => false,
        }
    }

    fn patterns(&self) -> usize {
        self.topics.len() + self.groups.as_ref().map_or(0, Vec::len)
    }
}

impl RuleAction {
    fn has(self, action: Action) -> bool {
        match self {
            Self::Publish => action == Action::Publish,
            Self::Subscribe => action == Action::Subscribe,
            Self::Admin => action == Action::Admin,
            Self::Any => true,
        }
    }
}

fn topic_patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let patterns = texts.iter().map(|text| Pattern::for_topics(text));
    patterns.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// Where the field is there expected a list: a `null` would quietly mean all groups.
fn group_patterns<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<Pattern>>, D::Error> {
    Vec::deserialize(deserializer).map(Some)
}
