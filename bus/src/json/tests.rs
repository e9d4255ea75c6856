//! The scanner against serde_json as the judge, on texts that are right, nearly right and wrong.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, value::RawValue};

/// What the judge says: a text is JSON if it can be taken as a raw value.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z \"\\\\\u{0}-\u{1f}]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Holds payloads against little, so that most fit.
fn validator() -> prombus_schema::Validator {
    let schema = r#"{"properties": {"a": {"type": ["number", "string", "object"]}}}"#;
    let schema = prombus_schema::Schema::parse(schema).expect("a schema");
    prombus_schema::Validator::new(&schema).expect("a schema")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn compact_text_is_returned_as_it_is(value in value()) {
        let text = value.to_string();
        let compacted = compact(&text).expect("it is JSON");
        prop_assert!(matches!(compacted, Cow::Borrowed(_)));
        prop_assert_eq!(&*compacted, &*text);
    }

    #[test]
    fn whitespace_goes_and_nothing_else(value in value()) {
        let pretty = format!("\r\n\t {} ", serde_json::to_string_pretty(&value).expect("it is JSON"));
        prop_assert_eq!(compact(&pretty).expect("it is JSON"), value.to_string());
    }

    #[test]
    fn agrees_with_the_judge_on_damaged_texts(value in value(), at in any::<prop::sample::Index>(), byte in "[\\]\\[{}\",:0-9eE+.tfn\\\\u \n\u{1}a-]") {
        let mut chars: Vec<char> = value.to_string().chars().collect();
        let at = at.index(chars.len());
        chars[at] = byte.chars().next().unwrap_or(' ');
        let text: String = chars.into_iter().collect();
        prop_assert_eq!(compact(&text).is_ok(), is_json(&text), "{}", text);
    }

    #[test]
    fn a_schema_lets_nothing_pass_that_is_not_compact_json(value in value(), at in any::<prop::sample::Index>(), byte in "[\\]\\[{}\",:0-9eE+.tfn\\\\u \n\u{1}a-]") {
        let validator = validator();
        let mut chars: Vec<char> = value.to_string().chars().collect();
        let at = at.index(chars.len());
        chars[at] = byte.chars().next().unwrap_or(' ');
        for text in [value.to_string(), chars.iter().collect(), serde_json::to_string_pretty(&value).expect("it is JSON")] {
            if validator.fits_compact(&text) {
                prop_assert!(matches!(compact(&text), Ok(Cow::Borrowed(_))), "{}", text);
            }
        }
    }

    #[test]
    fn agrees_with_the_judge_on_cut_texts(value in value(), at in any::<prop::sample::Index>()) {
        let text: String = value.to_string();
        let cut: String = text.chars().take(at.index(text.chars().count())).collect();
        prop_assert_eq!(compact(&cut).is_ok(), is_json(&cut), "{}", cut);
    }

    #[test]
    fn agrees_with_the_judge_on_noise(text in "[\\]\\[{}\",:0-9eE+.\\\\u \n\ta-z-]{0,24}") {
        prop_assert_eq!(compact(&text).is_ok(), is_json(&text), "{}", text);
    }

    #[test]
    fn agrees_with_the_judge_on_numbers(text in "-?[0-9]{0,20}(\\.[0-9]{0,10})?([eE][+-]?[0-9]{0,2})?|[0-9/:]{8,20}") {
        prop_assert_eq!(compact(&text).is_ok(), is_json(&text), "{}", text);
    }
}

#[test]
fn spelling_is_kept() {
    for text in [
        r#"{"b":1.50,"a":1e+02,"a":-0,"\u0041":"\/\ud83d\ude00\ud800"}"#,
        "123456789012345678901234567890.000",
        r#""\"""#,
        "null",
    ] {
        assert_eq!(compact(text).expect("it is JSON"), text);
    }
    assert_eq!(
        compact(" { \"a b\" : [ 1 , 2 ] , \"c\" : { } } ").expect("it is JSON"),
        r#"{"a b":[1,2],"c":{}}"#
    );
}

#[test]
fn depth_128_is_fine_and_129_is_not() {
    for (open, close) in [("[", "]"), ("{\"a\":[", "]}")] {
        let levels = 128 / open.matches(['[', '{']).count();
        let deepest = format!("{}1{}", open.repeat(levels), close.repeat(levels));
        assert!(compact(&deepest).is_ok());
        let error = compact(&format!("[{deepest}]")).expect_err("one too deep");
        assert!(error.reason.contains("128"), "{error}");
    }
}

#[test]
fn errors_say_where() {
    for (text, at) in [
        ("", 0),
        ("[1,]", 3),
        ("{\"a\" 1}", 5),
        ("[1 2]", 3),
        ("\"a\u{1}\"", 2),
        ("1 1", 2),
    ] {
        assert_eq!(compact(text).expect_err(text).at, at, "{text}");
    }
}
