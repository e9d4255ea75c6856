//! Which version of a schema may follow which: the modes, and what each of them asks.

use crate::document::Schema;
use crate::subset::{Finding, findings};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What a new version of a schema has to be, beside the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compatibility {
    /// Anything.
    None,
    /// What fitted the latest version fits the new one: consumers go first.
    #[default]
    Backward,
    /// What fits the new version fits the latest: publishers go first.
    Forward,
    /// Both.
    Full,
    /// Backward, to every earlier version.
    BackwardTransitive,
    /// Forward, to every earlier version.
    ForwardTransitive,
    /// Both, to every earlier version.
    FullTransitive,
}

/// A word that names no mode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown compatibility {word:?}; expected one of none, backward, forward, full, backward_transitive, forward_transitive, full_transitive"
)]
pub struct UnknownCompatibility {
    /// The word, truncated if long.
    pub word: String,
}

/// Why a schema may not follow an earlier version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Incompatible {
    /// The earlier version.
    pub version: u32,
    /// The direction that does not hold: [`Compatibility::Backward`] or [`Compatibility::Forward`].
    pub direction: Compatibility,
    /// Where and why, as many as are looked for.
    pub findings: Vec<Finding>,
}

impl Compatibility {
    /// All modes, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Backward,
        Self::Forward,
        Self::Full,
        Self::BackwardTransitive,
        Self::ForwardTransitive,
        Self::FullTransitive,
    ];

    /// Its name everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Backward => "backward",
            Self::Forward => "forward",
            Self::Full => "full",
            Self::BackwardTransitive => "backward_transitive",
            Self::ForwardTransitive => "forward_transitive",
            Self::FullTransitive => "full_transitive",
        }
    }

    /// Whether every earlier version counts, not only the latest.
    pub fn is_transitive(self) -> bool {
        matches!(
            self,
            Self::BackwardTransitive | Self::ForwardTransitive | Self::FullTransitive
        )
    }

    fn directions(self) -> &'static [Self] {
        match self {
            Self::None => &[],
            Self::Backward | Self::BackwardTransitive => &[Self::Backward],
            Self::Forward | Self::ForwardTransitive => &[Self::Forward],
            Self::Full | Self::FullTransitive => &[Self::Backward, Self::Forward],
        }
    }
}

/// Checks a new schema against the earlier ones, which come in the order of their versions.
pub fn check(
    mode: Compatibility,
    earlier: &[(u32, &Schema)],
    new: &Schema,
) -> Result<(), Incompatible> {
    let first = if mode.is_transitive() {
        0
    } else {
        earlier.len().saturating_sub(1)
    };
    for (version, old) in earlier[first..].iter().rev() {
        for &direction in mode.directions() {
            let findings = match direction {
                Compatibility::Forward => findings(new, old),
                _ => findings(old, new),
            };
            if !findings.is_empty() {
                return Err(Incompatible {
                    version: *version,
                    direction,
                    findings,
                });
            }
        }
    }
    Ok(())
}

impl FromStr for Compatibility {
    type Err = UnknownCompatibility;

    fn from_str(word: &str) -> Result<Self, UnknownCompatibility> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == word);
        found.ok_or_else(|| UnknownCompatibility {
            word: word.chars().take(64).collect(),
        })
    }
}

impl fmt::Display for Compatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_proven = self.findings.iter().all(|finding| finding.rule.is_proven());
        let verdict = if is_proven { "not" } else { "cannot be proven" };
        write!(
            f,
            "{verdict} {} compatible with version {}",
            self.direction, self.version
        )?;
        for (at, finding) in self.findings.iter().enumerate() {
            let separator = if at == 0 { ": " } else { "; " };
            write!(f, "{separator}{finding}")?;
        }
        Ok(())
    }
}
