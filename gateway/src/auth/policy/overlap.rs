//! How the names of two patterns relate: whether one pattern has all of the other's, or any of them.
//!
//! A pattern is a word of steps, each a letter or a run of any letters, and that twice over: a topic is a word of
//! segments, and a segment is a word of characters. Both tables are filled from the ends of the words, so the work is
//! the product of their lengths.

use prombus::Pattern;

/// A pattern taken apart.
pub(super) struct Topics(Vec<Step<Segment>>);

enum Step<L> {
    /// Any number of letters.
    Run,
    Letter(L),
}

/// What one segment of a name may be.
enum Segment {
    Every,
    Text(Vec<Step<u8>>),
}

/// Stands for one or more letters of the alphabet.
trait Letter {
    /// Whether it matches every character.
    fn is_every(&self) -> bool;
    /// Whether it matches all that the other matches.
    fn includes(&self, other: &Self) -> bool;
    /// Whether some character matches both.
    fn meets(&self, other: &Self) -> bool;
}

impl Topics {
    /// `*` and `**` next to each other may stand in any order, so there the runs are put last, as one: then equal
    /// patterns are equal here. A topic has at least one segment, so `**` alone is the same as `*.**`.
    pub(super) fn of(pattern: &Pattern) -> Self {
        let mut steps = Vec::new();
        let mut has_run = false;
        for segment in pattern.as_str().split('.') {
            match segment {
                "**" => has_run = true,
                "*" => steps.push(Step::Letter(Segment::Every)),
                text => {
                    steps.extend(has_run.then_some(Step::Run));
                    has_run = false;
                    let text = text.bytes().map(character).collect();
                    steps.push(Step::Letter(Segment::Text(text)));
                }
            }
        }
        if steps.is_empty() {
            steps.push(Step::Letter(Segment::Every));
        }
        steps.extend(has_run.then_some(Step::Run));
        Self(steps)
    }

    /// Whether every name of `other` is certainly one of these.
    pub(super) fn includes(&self, other: &Self) -> bool {
        includes(&self.0, &other.0)
    }

    /// Whether some name is one of both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        meets(&self.0, &other.0)
    }
}

impl Letter for Segment {
    fn is_every(&self) -> bool {
        matches!(self, Self::Every)
    }

    fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Every, _) => true,
            (Self::Text(_), Self::Every) => false,
            (Self::Text(outer), Self::Text(inner)) => includes(outer, inner),
        }
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Every, _) | (_, Self::Every) => true,
            (Self::Text(one), Self::Text(other)) => meets(one, other),
        }
    }
}

impl Letter for u8 {
    fn is_every(&self) -> bool {
        false
    }

    fn includes(&self, other: &Self) -> bool {
        self == other
    }

    fn meets(&self, other: &Self) -> bool {
        self == other
    }
}

fn character(byte: u8) -> Step<u8> {
    match byte {
        b'*' => Step::Run,
        byte => Step::Letter(byte),
    }
}

/// Never wrongly true. A run of `outer` is laid over `inner` in one way for all of its words, which misses inclusions
/// that need another way for each.
fn includes<L: Letter>(outer: &[Step<L>], inner: &[Step<L>]) -> bool {
    compare(outer, inner, |outer, inner, rest| match (outer, inner) {
        (None, None) => true,
        (Some(Step::Run), None) => rest.after_first,
        (Some(Step::Letter(_)), None) | (None, Some(_)) => false,
        (Some(Step::Run), Some(_)) => rest.after_first || rest.after_second,
        (Some(Step::Letter(outer)), Some(Step::Letter(inner))) => {
            outer.includes(inner) && rest.after_both
        }
        // The run is either nothing, or a letter and again a run.
        (Some(Step::Letter(outer)), Some(Step::Run)) => {
            rest.after_second && outer.is_every() && rest.after_first
        }
    })
}

fn meets<L: Letter>(one: &[Step<L>], other: &[Step<L>]) -> bool {
    compare(one, other, |one, other, rest| match (one, other) {
        (None, None) => true,
        (Some(Step::Run), None) => rest.after_first,
        (None, Some(Step::Run)) => rest.after_second,
        (Some(Step::Letter(_)), None) | (None, Some(Step::Letter(_))) => false,
        (Some(Step::Letter(one)), Some(Step::Letter(other))) => one.meets(other) && rest.after_both,
        (Some(Step::Run), _) | (_, Some(Step::Run)) => rest.after_first || rest.after_second,
    })
}

/// The answers for what remains of both words after a step of the first, of the second, or of both.
struct Rest {
    after_first: bool,
    after_second: bool,
    after_both: bool,
}

/// Answers a question about two words from the answers about their ends. Beyond an end every answer is no.
fn compare<L>(
    first: &[Step<L>],
    second: &[Step<L>],
    answer: impl Fn(Option<&Step<L>>, Option<&Step<L>>, Rest) -> bool,
) -> bool {
    let width = second.len() + 1;
    let mut below = vec![false; width + 1];
    for at_first in (0..=first.len()).rev() {
        let mut row = vec![false; width + 1];
        for at_second in (0..width).rev() {
            let rest = Rest {
                after_first: below[at_second],
                after_second: row[at_second + 1],
                after_both: below[at_second + 1],
            };
            row[at_second] = answer(first.get(at_first), second.get(at_second), rest);
        }
        below = row;
    }
    below[0]
}
