//! How much of a pattern a policy allows.

use super::overlap::Topics;
use super::{Action, Effect, Policy};
use prombus::Pattern;

/// How many of the topics that a pattern can match are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Certainly all of them.
    All,
    /// Some perhaps, and some certainly or perhaps not. [`Policy::may`] tells for each topic.
    Part,
    /// Certainly none.
    Nothing,
}

impl Policy {
    /// How much of a pattern is allowed, counting topics that do not exist yet. Rules are laid over the pattern one by
    /// one; where only several together would cover it, or where a rule that denies has an exception before it that
    /// covers it, the answer is the cautious [`Coverage::Part`]. For a plain name it is what [`Policy::may`] says.
    pub fn covers(&self, action: Action, topics: &Pattern, group: Option<&str>) -> Coverage {
        let wanted = Topics::of(topics);
        let mut allows_some = false;
        let mut denies_some = false;
        for rule in self.about(action, group) {
            let patterns: Vec<Topics> = rule.topics.iter().map(Topics::of).collect();
            let has_all = patterns.iter().any(|pattern| pattern.includes(&wanted));
            let has_some = has_all || patterns.iter().any(|pattern| pattern.meets(&wanted));
            match rule.effect {
                Effect::Allow if has_all && !denies_some => return Coverage::All,
                Effect::Allow if has_all => return Coverage::Part,
                Effect::Allow => allows_some |= has_some,
                // What comes after it has nothing left to answer.
                Effect::Deny if has_all => break,
                Effect::Deny => denies_some |= has_some,
            }
        }
        if allows_some {
            Coverage::Part
        } else {
            Coverage::Nothing
        }
    }
}
