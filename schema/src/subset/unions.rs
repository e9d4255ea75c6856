//! Choices: `anyOf`, `oneOf`, `not` and `if` on the right, and taking the left side apart into cases.

use super::Proof;
use super::facts::{Conj, Facts, Node};
use super::finding::{Finding, Rule};
use super::keywords::fail;
use super::sameness::is_same;

/// The most branches that a case distinction may have.
const MAX_CASES: usize = 64;

impl Proof {
    pub(super) fn any_of(
        &mut self,
        left: &Conj<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let branches = right.list("anyOf");
        if branches
            .iter()
            .any(|branch| self.holds_quietly(left, branch))
        {
            return true;
        }
        let detail = "no branch accepts everything that was allowed";
        fail(out, right, "anyOf", Rule::NoBranch, detail)
    }

    /// One branch accepts everything, and all others nothing of it.
    pub(super) fn one_of(
        &mut self,
        left: &Conj<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let branches = right.list("oneOf");
        let Some(at) = branches
            .iter()
            .position(|branch| self.holds_quietly(left, branch))
        else {
            let detail = "no branch accepts everything that was allowed";
            return fail(out, right, "oneOf", Rule::NoBranch, detail);
        };
        for (other_at, other) in branches.iter().enumerate() {
            if other_at != at && !self.is_disjoint(left, other) {
                let detail = format!("branches {at} and {other_at} may accept the same value");
                return fail(out, right, "oneOf", Rule::BranchesOverlap, detail);
            }
        }
        true
    }

    pub(super) fn not(
        &mut self,
        left: &Conj<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let Some(excluded) = right.child("not") else {
            return true;
        };
        let detail = "what is excluded may have been allowed";
        self.is_disjoint(left, &excluded) || fail(out, right, "not", Rule::NotExcluded, detail)
    }

    pub(super) fn if_then_else(
        &mut self,
        left: &Conj<'_>,
        facts: &Facts<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> bool {
        let parts = ["if", "then", "else"].map(|part| right.child(part));
        let is_said = facts.nodes.iter().any(|node| {
            let own = ["if", "then", "else"].map(|part| node.child(part));
            own.iter().zip(&parts).all(|pair| match pair {
                (None, None) => true,
                (Some(own), Some(wanted)) => is_same(own, wanted),
                _ => false,
            })
        });
        let [Some(condition), then, otherwise] = parts else {
            return true;
        };
        if is_said {
            return true;
        }
        let never = self.is_disjoint(left, &condition);
        let always = !never && self.holds_quietly(left, &condition);
        let mut holds = true;
        if let Some(then) = then.filter(|_| !never) {
            holds &= self.holds(&left.with(condition), &then, out);
        }
        if let Some(otherwise) = otherwise.filter(|_| !always) {
            holds &= self.holds(left, &otherwise, out);
        }
        holds
    }

    /// Whether the right side follows in each case of a union on the left, or of the types where the right side is a
    /// choice. `None` where there are no cases to tell apart.
    pub(super) fn holds_in_all_cases(
        &mut self,
        left: &Conj<'_>,
        facts: &Facts<'_>,
        right: &Node<'_>,
        out: &mut Vec<Finding>,
    ) -> Option<bool> {
        let cases = union_cases(left, facts).or_else(|| type_cases(left, facts, right))?;
        let mut holds = true;
        for case in cases {
            holds &= self.holds(&case, right, out);
        }
        Some(holds)
    }

    /// Whether nothing fits both.
    fn is_disjoint(&mut self, left: &Conj<'_>, right: &Node<'_>) -> bool {
        self.is_empty(&Facts::of(&left.with(right.clone())))
    }
}

/// The cases of the first union on the left that was not taken apart yet.
pub(super) fn union_cases<'a>(left: &Conj<'a>, facts: &Facts<'a>) -> Option<Vec<Conj<'a>>> {
    for node in &facts.nodes {
        for keyword in ["anyOf", "oneOf"] {
            let name = format!("{}/{keyword}", node.name());
            let branches = node.list(keyword);
            if branches.is_empty() || branches.len() > MAX_CASES || left.split.contains(&name) {
                continue;
            }
            let case = |at: usize| {
                let mut case = left.with(branches[at].clone());
                case.split.push(name.clone());
                if keyword == "oneOf" {
                    let others = branches
                        .iter()
                        .enumerate()
                        .filter(|(other, _)| *other != at);
                    case.nots.extend(others.map(|(_, branch)| branch.clone()));
                }
                case
            };
            return Some((0..branches.len()).map(case).collect());
        }
    }
    None
}

/// The types on the left one by one, which helps only where the right side is a choice.
fn type_cases<'a>(left: &Conj<'a>, facts: &Facts<'_>, right: &Node<'_>) -> Option<Vec<Conj<'a>>> {
    let is_choice = ["anyOf", "oneOf", "not", "if"]
        .iter()
        .any(|keyword| right.value.get(keyword).is_some());
    let types: Vec<_> = facts.types.singles().collect();
    if !is_choice || types.len() < 2 {
        return None;
    }
    let case = |types| Conj {
        types,
        ..left.clone()
    };
    Some(types.into_iter().map(case).collect())
}
