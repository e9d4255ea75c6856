//! A quick yes: payloads held against the common keywords in one pass over their text, without building a value.
//!
//! It answers only "fits" or "cannot tell". Whatever it does not know, and every payload that does not fit, goes to the
//! `jsonschema` crate, which also says why. So a schema with an unknown keyword is not compiled, and a text with escapes
//! where they matter, exponents, repeated names or digits beyond what is exact is not decided here.

mod compile;
mod cursor;
mod pattern;

#[cfg(test)]
mod tests;

use cursor::{Cursor, Number, Text};
use pattern::Pattern;
use std::sync::atomic::{AtomicU8, Ordering};

/// The most names of one object that are compiled: their presence is one bit each.
const MAX_NAMES: usize = 64;
/// How deep payloads are followed; serde_json refuses those deeper than 128.
const MAX_DEPTH: usize = 64;

/// A schema whose keywords are all known here.
pub(crate) struct FastSchema {
    root: Node,
}

#[derive(Default)]
enum Node {
    /// Everything fits.
    #[default]
    Any,
    /// Nothing does.
    Never,
    Of(Box<Rules>),
}

/// What one place of a payload has to be.
#[derive(Default)]
struct Rules {
    kinds: Kinds,
    /// One of these scalars, where there is an `enum` or a `const`.
    allowed: Option<Vec<Scalar>>,
    numbers: NumberRules,
    texts: TextRules,
    lists: ListRules,
    objects: ObjectRules,
}

/// Which types fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kinds(u8);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Scalar {
    Null,
    Bool(bool),
    Whole(i64),
    Text(String),
}

#[derive(Debug, Default)]
struct NumberRules {
    lower: Vec<Bound>,
    upper: Vec<Bound>,
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    value: f64,
    /// The same, where it is a whole number.
    whole: Option<i64>,
    is_exclusive: bool,
}

#[derive(Default)]
struct TextRules {
    min_chars: usize,
    max_chars: Option<usize>,
    pattern: Option<Pattern>,
}

#[derive(Default)]
struct ListRules {
    items: Node,
    min: usize,
    max: Option<usize>,
}

/// A member's name. Most are found and told apart by comparing one number.
struct Name {
    edge: u64,
    text: Box<str>,
    /// As most payloads have it, with its colon.
    quoted: Box<str>,
}

#[derive(Default)]
struct ObjectRules {
    names: Vec<(Name, Node)>,
    /// Which name followed the start and each of the names in the last payload; a guess that is verified.
    followers: Vec<AtomicU8>,
    /// Which of the names have to be there, a bit for each.
    required: u64,
    others: Node,
    min: usize,
    max: Option<usize>,
}

impl Default for Kinds {
    fn default() -> Self {
        Self::ALL
    }
}

impl Kinds {
    const NULL: Self = Self(1);
    const BOOL: Self = Self(2);
    /// Numbers that need not be whole.
    const NUMBER: Self = Self(4);
    const INTEGER: Self = Self(8);
    const TEXT: Self = Self(16);
    const LIST: Self = Self(32);
    const OBJECT: Self = Self(64);
    const ALL: Self = Self(127);

    fn has(self, kind: Self) -> bool {
        self.0 & kind.0 != 0
    }
}

impl FastSchema {
    /// Whether a payload certainly is JSON and certainly fits.
    pub(crate) fn fits(&self, payload: &str) -> bool {
        self.pass(payload).is_some()
    }

    /// The same for one without insignificant whitespace.
    pub(crate) fn fits_compact(&self, payload: &str) -> bool {
        let end = self.pass(payload);
        end.is_some_and(|end| !end.has_whitespace())
    }

    /// The end of a payload that fits.
    fn pass<'a>(&self, payload: &'a str) -> Option<Cursor<'a>> {
        let mut cursor = Cursor::new(payload);
        fits(&self.root, &mut cursor, 0)?;
        cursor.is_at_end().then_some(cursor)
    }
}

/// Goes past one value; `None` where it does not fit or one cannot tell.
fn fits(node: &Node, cursor: &mut Cursor<'_>, depth: usize) -> Option<()> {
    let rules = match node {
        Node::Any => return skip(cursor, depth),
        Node::Never => return None,
        Node::Of(rules) => rules,
    };
    match cursor.peek()? {
        b'{' => {
            rules.takes(Kinds::OBJECT)?;
            object(&rules.objects, cursor, depth)
        }
        b'[' => {
            rules.takes(Kinds::LIST)?;
            list(&rules.lists, cursor, depth)
        }
        b'"' => {
            let text = cursor.text()?;
            rules.kinds.has(Kinds::TEXT).then_some(())?;
            rules.allows(|one| matches!(one, Scalar::Text(known) if text.is(known)))?;
            rules.texts.fit(&text)
        }
        b't' | b'f' => {
            let value = cursor.flag()?;
            rules.kinds.has(Kinds::BOOL).then_some(())?;
            rules.allows(|one| *one == Scalar::Bool(value))
        }
        b'n' => {
            cursor.null()?;
            rules.kinds.has(Kinds::NULL).then_some(())?;
            rules.allows(|one| *one == Scalar::Null)
        }
        _ => {
            let number = cursor.number()?;
            let whole = number.whole();
            let is_of_kind = rules.kinds.has(Kinds::NUMBER)
                || rules.kinds.has(Kinds::INTEGER) && whole.is_some();
            is_of_kind.then_some(())?;
            rules.allows(|one| matches!(one, Scalar::Whole(known) if whole == Some(*known)))?;
            rules.numbers.fit(&number)
        }
    }
}

fn object(rules: &ObjectRules, cursor: &mut Cursor<'_>, depth: usize) -> Option<()> {
    let depth = deeper(depth)?;
    cursor.open()?;
    let (mut seen, mut count, mut place) = (0_u64, 0, 0);
    let mut is_first = true;
    while cursor.next_member(b'}', is_first)? {
        is_first = false;
        count += 1;
        let Some(at) = rules.next_name(cursor, place)? else {
            fits(&rules.others, cursor, depth)?;
            continue;
        };
        // One that comes twice is refused with the reason.
        (seen & (1 << at) == 0).then_some(())?;
        seen |= 1 << at;
        place = at + 1;
        fits(&rules.names[at].1, cursor, depth)?;
    }
    let is_complete = seen & rules.required == rules.required
        && seen.count_ones() as usize >= rules.min
        && rules.max.is_none_or(|max| count <= max);
    is_complete.then_some(())
}

impl ObjectRules {
    /// Goes past a member's name and colon: which of the names it is, if it is one of them. The name that came next in the
    /// last payload is tried first, because a publisher writes its members in one order.
    fn next_name(&self, cursor: &mut Cursor<'_>, place: usize) -> Option<Option<usize>> {
        let expected = self.followers.get(place);
        if let Some(expected) = expected {
            let at = usize::from(expected.load(Ordering::Relaxed));
            if let Some((name, _)) = self.names.get(at)
                && cursor.pass(&name.quoted)
            {
                return Some(Some(at));
            }
        }
        let name = cursor.text()?;
        cursor.colon()?;
        let found = find(&self.names, name.plain()?);
        if let (Some(at), Some(expected)) = (found, expected) {
            expected.store(at as u8, Ordering::Relaxed);
        }
        Some(found)
    }
}

fn find(names: &[(Name, Node)], name: &str) -> Option<usize> {
    let edge = edge(name.as_bytes());
    names.iter().position(|(known, _)| known.is(name, edge))
}

fn list(rules: &ListRules, cursor: &mut Cursor<'_>, depth: usize) -> Option<()> {
    let depth = deeper(depth)?;
    cursor.open()?;
    let mut count = 0;
    let mut is_first = true;
    while cursor.next_member(b']', is_first)? {
        is_first = false;
        count += 1;
        fits(&rules.items, cursor, depth)?;
    }
    let is_right = count >= rules.min && rules.max.is_none_or(|max| count <= max);
    is_right.then_some(())
}

/// Goes past a value that may be anything.
fn skip(cursor: &mut Cursor<'_>, depth: usize) -> Option<()> {
    match cursor.peek()? {
        b'{' => {
            let depth = deeper(depth)?;
            cursor.open()?;
            let mut is_first = true;
            while cursor.next_member(b'}', is_first)? {
                is_first = false;
                cursor.text()?;
                cursor.colon()?;
                skip(cursor, depth)?;
            }
            Some(())
        }
        b'[' => {
            let depth = deeper(depth)?;
            cursor.open()?;
            let mut is_first = true;
            while cursor.next_member(b']', is_first)? {
                is_first = false;
                skip(cursor, depth)?;
            }
            Some(())
        }
        b'"' => cursor.text().map(drop),
        b't' | b'f' => cursor.flag().map(drop),
        b'n' => cursor.null(),
        _ => cursor.number().map(drop),
    }
}

fn deeper(depth: usize) -> Option<usize> {
    (depth < MAX_DEPTH).then_some(depth + 1)
}

impl Name {
    fn new(text: &str) -> Self {
        Self {
            edge: edge(text.as_bytes()),
            text: text.into(),
            quoted: format!("\"{text}\":").into(),
        }
    }

    fn is(&self, text: &str, edge: u64) -> bool {
        let is_alike = self.edge == edge && self.text.len() == text.len();
        is_alike && (text.len() <= size_of::<u64>() || *self.text == *text)
    }
}

/// Eight bytes of a name, overlapping where it has fewer: two names of one length, at most eight, differ in it.
fn edge(name: &[u8]) -> u64 {
    if let Some(first) = name.first_chunk() {
        return u64::from_le_bytes(*first);
    }
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        return u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
    }
    let byte = |at: usize| name.get(at).copied().map_or(0, u64::from);
    byte(0) << 16 | byte(1) << 8 | byte(2)
}

impl Rules {
    /// Whether values of a type that is no scalar fit.
    fn takes(&self, kind: Kinds) -> Option<()> {
        (self.kinds.has(kind) && self.allowed.is_none()).then_some(())
    }

    fn allows(&self, is_it: impl Fn(&Scalar) -> bool) -> Option<()> {
        match &self.allowed {
            None => Some(()),
            Some(allowed) => allowed.iter().any(is_it).then_some(()),
        }
    }
}

impl NumberRules {
    fn fit(&self, number: &Number<'_>) -> Option<()> {
        if self.lower.is_empty() && self.upper.is_empty() {
            return Some(());
        }
        let lower = self.lower.iter().all(|bound| bound.is_below(number));
        let upper = self.upper.iter().all(|bound| bound.is_above(number));
        (lower && upper).then_some(())
    }
}

impl Bound {
    fn is_below(&self, number: &Number<'_>) -> bool {
        match (self.whole, number.whole()) {
            (Some(bound), Some(number)) => number > bound || number == bound && !self.is_exclusive,
            _ => {
                let is_far = number.floor().is_some_and(|floor| floor > self.value);
                let is_beyond = |value| value > self.value + self.margin();
                is_far || number.value().is_some_and(is_beyond)
            }
        }
    }

    fn is_above(&self, number: &Number<'_>) -> bool {
        match (self.whole, number.whole()) {
            (Some(bound), Some(number)) => number < bound || number == bound && !self.is_exclusive,
            _ => {
                let is_far = number.floor().is_some_and(|floor| floor + 1.0 < self.value);
                let is_beyond = |value| value < self.value - self.margin();
                is_far || number.value().is_some_and(is_beyond)
            }
        }
    }

    /// Fractions this close to the bound are not decided here: parsers differ in the last bit.
    fn margin(&self) -> f64 {
        self.value.abs().max(1.0) * 1e-9
    }
}

impl TextRules {
    fn fit(&self, text: &Text<'_>) -> Option<()> {
        if self.min_chars == 0 && self.max_chars.is_none() && self.pattern.is_none() {
            return Some(());
        }
        let text = text.plain()?;
        let has_length = || {
            // No character has less than one byte.
            let is_short = self.max_chars.is_some_and(|max| text.len() <= max);
            if self.min_chars == 0 && is_short {
                return true;
            }
            let chars = text.chars().count();
            chars >= self.min_chars && self.max_chars.is_none_or(|max| chars <= max)
        };
        let is_bounded = self.min_chars > 0 || self.max_chars.is_some();
        (!is_bounded || has_length()).then_some(())?;
        let is_matched = |pattern: &Pattern| pattern.matches(text);
        self.pattern.as_ref().is_none_or(is_matched).then_some(())
    }
}
