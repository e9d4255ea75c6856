//! Patterns on a table of states: one step for each byte, without the caches and the allocation that the library's
//! matching needs for every text.
//!
//! The table decides only about ASCII text, and only for patterns whose syntax means the same in ECMAScript and in the
//! `regex` crate. Everything else is matched by the library.

use crate::validator::{MAX_PATTERN_PROGRAM_BYTES, options};
use jsonschema::Validator;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use regex_automata::{Input, nfa::thompson};
use serde_json::{Value, json};

/// The most bytes of all tables of a schema; patterns that need more are matched by the library.
pub(super) const MAX_TABLE_BYTES: usize = 64 << 10;

pub(super) struct Pattern {
    /// Absent where the pattern is not plain or its table would be too large.
    table: Option<Table>,
    library: Validator,
}

struct Table {
    states: dense::DFA<Vec<u32>>,
    /// Where every text begins.
    start: StateID,
}

impl Pattern {
    /// Compiles a pattern, with a table where there is room for it; `None` where the library does not take it.
    pub(super) fn compile(pattern: &str, table_room: &mut usize) -> Option<Self> {
        let library = options().build(&json!({ "pattern": pattern })).ok()?;
        let table = is_plain(pattern)
            .then(|| table(pattern, *table_room))
            .flatten();
        *table_room -= table
            .as_ref()
            .map_or(0, |table| table.states.memory_usage());
        Some(Self { table, library })
    }

    /// Whether a text without escapes, so without control characters, matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        if let Some(table) = &self.table
            && text.is_ascii()
        {
            return table.matches(text.as_bytes());
        }
        self.library.is_valid(&Value::from(text))
    }
}

impl Table {
    /// Whether the pattern matches anywhere in a text.
    fn matches(&self, text: &[u8]) -> bool {
        let states = &self.states;
        let mut state = self.start;
        for &byte in text {
            state = states.next_state(state, byte);
            if states.is_special_state(state) {
                if states.is_match_state(state) {
                    return true;
                }
                if states.is_dead_state(state) {
                    return false;
                }
            }
        }
        states.is_match_state(states.next_eoi_state(state))
    }
}

fn table(pattern: &str, room: usize) -> Option<Table> {
    let bytes = syntax::Config::new().unicode(false).utf8(false);
    let program = thompson::Config::new()
        .utf8(false)
        .nfa_size_limit(Some(MAX_PATTERN_PROGRAM_BYTES));
    let limits = dense::Config::new()
        .start_kind(StartKind::Unanchored)
        .dfa_size_limit(Some(room))
        .determinize_size_limit(Some(MAX_PATTERN_PROGRAM_BYTES));
    let built = dense::Builder::new()
        .configure(limits)
        .syntax(bytes)
        .thompson(program)
        .build(pattern);
    let states = built.ok().filter(|states| states.memory_usage() <= room)?;
    let start = states.start_state_forward(&Input::new("")).ok()?;
    Some(Table { states, start })
}

/// Whether a pattern has only what both syntaxes read alike: literals, groups, alternatives, repetitions, anchors, and
/// classes without classes in them.
fn is_plain(pattern: &str) -> bool {
    /// Escaped punctuation, digits and word characters. Whitespace is not among them: the two differ in what it is.
    const ESCAPED: &[u8] = br"\.-/*+?()[]{}|^$dDwW";
    /// What only one of the two knows, or reads in another way.
    const DIFFERENT: [&str; 8] = ["(?", "{,", "[]", "[^]", "&&", "--", "~~", "[:"];
    let bytes = pattern.as_bytes();
    let is_text = bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    if !is_text || DIFFERENT.iter().any(|part| pattern.contains(part)) {
        return false;
    }
    let mut is_in_class = false;
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if !bytes.next().is_some_and(|next| ESCAPED.contains(next)) => return false,
            b'[' if is_in_class => return false,
            b'[' => is_in_class = true,
            b']' => is_in_class = false,
            _ => {}
        }
    }
    true
}
