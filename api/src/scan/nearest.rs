//! The known name that an unknown one was probably meant to be.

/// Names that differ by more edits than this are not alike.
const MAX_EDITS: usize = 3;
/// Longer names are not compared.
const MAX_NAME_BYTES: usize = 64;

/// The known name nearest to `name`. A dotted one (`opts.from`) is compared by its last part.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let ranked = known.into_iter().map(|known| {
        let last = known.rsplit('.').next().unwrap_or(known);
        (edits(&simple(name), &simple(last)), known)
    });
    let (edits, known) = ranked.min_by_key(|(edits, _)| *edits)?;
    // Short names are alike only with fewer edits than they have characters.
    let is_alike = edits < name.len() && edits * 2 <= name.len() + 1;
    (edits <= MAX_EDITS && is_alike).then_some(known)
}

/// Case and separators do not count: `ack_timeout_ms` is meant as `ackTimeoutMs`.
fn simple(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The Levenshtein distance.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, expected) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *expected);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let known = [
            "topic",
            "group",
            "opts.from",
            "opts.ackTimeoutMs",
            "opts.key",
            "q",
        ];
        for (name, expected) in [
            ("topik", Some("topic")),
            ("Topic", Some("topic")),
            ("from", Some("opts.from")),
            ("form", Some("opts.from")),
            ("ack_timeout_ms", Some("opts.ackTimeoutMs")),
            ("kye", Some("opts.key")),
            ("x", None),
            ("", None),
            ("completelyelse", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!(nearest(&"t".repeat(100_000), known), None);
    }
}
