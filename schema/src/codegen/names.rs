//! Names of types and fields, from the names of topics, definitions and properties.

use std::collections::HashSet;

/// Words that cannot be the name of a field in Rust.
const RUST_WORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Gives each name once; one that is taken gets a number behind it.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// Names that are taken from the start, because the language or the file uses them.
    pub(super) fn reserving(taken: &[&str]) -> Self {
        Self(taken.iter().map(|name| (*name).to_owned()).collect())
    }

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
        let (first, rest) = word.split_at(1);
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    match name.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("N{name}"),
        Some(_) => name,
        None => "Empty".to_owned(),
    }
}

/// `lineItem` is `line_item`.
pub(super) fn field_name(text: &str) -> String {
    let mut name = String::new();
    for word in words(text) {
        if !name.is_empty() {
            name.push('_');
        }
        let mut was_lower = false;
        for letter in word.chars() {
            if letter.is_ascii_uppercase() && was_lower {
                name.push('_');
            }
            was_lower = !letter.is_ascii_uppercase();
            name.push(letter.to_ascii_lowercase());
        }
    }
    match name.chars().next() {
        None => "empty".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{name}"),
        Some(_) if RUST_WORDS.contains(&name.as_str()) => format!("{name}_"),
        Some(_) => name,
    }
}

/// `order.lineItem` is `ORDER_LINE_ITEM`.
pub(super) fn constant_name(text: &str) -> String {
    field_name(text).to_ascii_uppercase()
}

/// The parts of a name that are letters and digits; what other characters there are separates them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_language() {
        for (text, kind, field) in [
            ("order.line-item", "OrderLineItem", "order_line_item"),
            ("lineItem", "LineItem", "line_item"),
            ("HTTPStatus", "HTTPStatus", "httpstatus"),
            ("type", "Type", "type_"),
            ("2nd", "N2nd", "n2nd"),
            ("ünï", "N", "n"),
            ("", "Empty", "empty"),
        ] {
            assert_eq!(
                (type_name(text).as_str(), field_name(text).as_str()),
                (kind, field)
            );
        }
        let mut names = Names::reserving(&["Option"]);
        let unique = |names: &mut Names| names.unique("Option".to_owned());
        assert_eq!(unique(&mut names), "Option2");
        assert_eq!(unique(&mut names), "Option3");
    }
}
