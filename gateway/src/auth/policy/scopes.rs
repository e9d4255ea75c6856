//! Scopes: what a token allows, as short words. `publish:heartbeat.*`, `subscribe:process.**` and `admin:**` name an
//! action and topics; `topic:read` and `topic:write` name all topics.

use super::{BadPolicy, Effect, Policy, Rule, RuleAction};
use prombus::Pattern;

impl Policy {
    /// What these scopes allow together. Tokens carry scopes for others too, so unknown ones are ignored;
    /// scopes only ever allow, so that opens nothing.
    pub fn from_scopes<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Result<Self, BadPolicy> {
        Self::new(scopes.into_iter().filter_map(rule).collect())
    }

    /// Whether a scope is one of ours.
    pub(in crate::auth) fn is_scope(scope: &str) -> bool {
        rule(scope).is_some()
    }
}

fn rule(scope: &str) -> Option<Rule> {
    let (action, topics) = match scope.split_once(':')? {
        ("topic", "read") => (RuleAction::Subscribe, "**"),
        ("topic", "write") => (RuleAction::Publish, "**"),
        ("publish", topics) => (RuleAction::Publish, topics),
        ("subscribe", topics) => (RuleAction::Subscribe, topics),
        ("admin", topics) => (RuleAction::Admin, topics),
        _ => return None,
    };
    Some(Rule {
        effect: Effect::Allow,
        action,
        topics: vec![Pattern::for_topics(topics).ok()?],
        groups: None,
    })
}
