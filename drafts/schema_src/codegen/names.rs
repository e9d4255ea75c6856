//! Names of types and fields, from names of topics, definitions and properties.

use std::collections::HashSet;

/// Words that cannot be the name of a field in Rust.
const RUST_WORDS: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false", "fn", "for",
    "gen", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "type", "unsafe", "use", "where", "while", "abstract", "become", "box", "do",
    "final", "macro", "override", "priv", "try", "typeof", "unsized", "virtual", "yield",
];

/// Gives each name once; one that is taken gets a number behind it.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    pub(super) fn unique(&mut self, wanted: String) -> String {
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        name
    }
}

/// `order.line-item` is `OrderLineItem`.
pub(super) fn type_name(text: &str) -> String {
    let mut name = String::new();
    for word in words(text) {
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.push_str(letters.as_str());
    }
    match name.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("T{name}"),
        Some(_) => name,
        None => "Empty".to_owned(),
    }
}

/// `lineItem` is `line_item`.
pub(super) fn field_name(text: &str) -> String {
    let mut name = String::new();
    for word in words(text) {
        let mut was_lower = false;
        if !name.is_empty() {
            name.push('_');
        }
        for letter in word.chars() {
            if letter.is_uppercase() && was_lower {
                name.push('_');
            }
            was_lower = letter.is_lowercase() || letter.is_ascii_digit();
            name.extend(letter.to_lowercase());
        }
    }
    match name.chars().next() {
        None => "empty".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{name}"),
        Some(_) if RUST_WORDS.contains(&name.as_str()) => format!("{name}_"),
        Some(_) => name,
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}
