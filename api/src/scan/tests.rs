//! The scanner against serde_json, which reads the same texts more slowly.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

/// Any JSON, not too large.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\"\\\\\\[\\]{}a]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Texts that come close to JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[\\[\\]{}\",:\\\\ntrue0-9.eE+ \\n\u{1}é-]{0,40}",
        "-?[0-9]{0,21}(\\.[0-9]{0,2})?([eE][+-]?[0-9]?)?",
        "\"[a-zé\\\\u0-9\\n]{0,20}\"?",
    ]
}

fn whole<'a, T: FromJson<'a>>(text: &'a str) -> Result<T, ScanError> {
    let mut scanner = Scanner::new(text);
    let value = T::from_json(&mut scanner)?;
    scanner.end()?;
    Ok(value)
}

proptest! {
    #[test]
    fn a_raw_value_ends_where_it_ends(value in json(), pretty in any::<bool>(), behind in "[,\\]} \n]?.{0,9}") {
        let written = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let written = written.unwrap();
        // A number or a literal only ends where something else begins.
        let behind = if value.is_object() || value.is_array() || value.is_string() { behind } else { format!(",{behind}") };
        let text = format!("{written}{behind}");
        let mut scanner = Scanner::new(&text);
        prop_assert_eq!(scanner.raw().unwrap(), &written);
        prop_assert_eq!(scanner.left(), behind);
    }

    #[test]
    fn texts_and_numbers_are_what_serde_says(text in nearly_json()) {
        let read = whole::<String>(&text).ok();
        prop_assert_eq!(read, serde_json::from_str(&text).ok());
        let read = whole::<u64>(&text).ok();
        // serde_json takes -0 for a whole number.
        prop_assert_eq!(read, serde_json::from_str(&text).ok().filter(|_| !text.contains('-')));
        let read = whole::<Vec<u32>>(&text).ok();
        let expected: Option<Option<Vec<u32>>> = serde_json::from_str(&text).ok();
        prop_assert_eq!(read, expected.filter(|_| !text.contains('-')).map(Option::unwrap_or_default));
    }

    #[test]
    fn what_is_ignored_has_to_be_json(text in nearly_json()) {
        let mut scanner = Scanner::new(&text);
        let ignored = scanner.ignore().and_then(|()| scanner.end()).is_ok();
        let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        // Only half a surrogate pair is told apart from what serde calls JSON.
        if !text.contains("\\u") {
            prop_assert_eq!(ignored, is_json);
        }
    }
}

#[test]
fn plain_strings_are_not_copied() {
    let text = r#"  "abc" "#;
    let mut scanner = Scanner::new(text);
    assert!(matches!(scanner.text(), Ok(Cow::Borrowed("abc"))));
    let mut scanner = Scanner::new(r#""a\nc""#);
    assert!(matches!(scanner.text(), Ok(Cow::Owned(text)) if text == "a\nc"));
}

#[test]
fn long_and_short_strings_end_at_every_offset() {
    for length in 0..150 {
        for special in ["", "\\\"", "\\\\", "é"] {
            let text = format!(
                "\"{}{special}{}\",1",
                "x".repeat(length),
                "y".repeat(length % 7)
            );
            let mut scanner = Scanner::new(&text);
            assert_eq!(scanner.raw().unwrap(), &text[..text.len() - 2]);
            let mut scanner = Scanner::new(&text);
            let expected: String = serde_json::from_str(&text[..text.len() - 2]).unwrap();
            assert_eq!(scanner.text().unwrap(), expected);
        }
    }
}

#[test]
fn deep_nesting_neither_overflows_nor_panics() {
    let deep = "[".repeat(1_000_000);
    assert!(Scanner::new(&deep).raw().is_err());
    assert!(Scanner::new(&deep).ignore().is_err());
    let closed = format!("{deep}{}", "]".repeat(1_000_000));
    assert_eq!(Scanner::new(&closed).raw().unwrap().len(), closed.len());
    assert!(Scanner::new(&closed).ignore().is_ok());
}
