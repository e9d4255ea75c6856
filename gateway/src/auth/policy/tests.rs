//! Policies against a naive oracle that tries every name of a small world.

use super::*;
use proptest::prelude::*;

/// Segments of the small world: for each piece of the patterns below one that only it matches, and one that nothing
/// does.
const SEGMENTS: &[&str] = &["a", "b", "ab", "ac", "cb", "acb", "c"];

fn pattern(text: &str) -> Pattern {
    Pattern::for_topics(text).expect("a pattern")
}

fn policy(json: &str) -> Policy {
    Policy::from_json(json).expect("a policy")
}

/// Every name of up to so many segments.
fn names(segments: &'static [&'static str], max_segments: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut longest = vec![String::new()];
    for _ in 0..max_segments {
        let longer = |name: &String| {
            let name = name.clone();
            segments.iter().map(move |segment| match name.as_str() {
                "" => (*segment).to_owned(),
                name => format!("{name}.{segment}"),
            })
        };
        longest = longest.iter().flat_map(longer).collect();
        names.extend(longest.iter().cloned());
    }
    names
}

/// The definition of a match, spelled out without any cleverness.
fn fits(pattern: &str, name: &str) -> bool {
    fn segments(pattern: &[&str], name: &[&str]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => {
                (0..=name.len()).any(|taken| segments(rest, &name[taken..]))
            }
            (Some((glob, pattern)), Some((segment, name))) => {
                characters(glob.as_bytes(), segment.as_bytes()) && segments(pattern, name)
            }
            _ => false,
        }
    }
    fn characters(glob: &[u8], text: &[u8]) -> bool {
        match glob.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|taken| characters(rest, &text[taken..])),
            Some((byte, rest)) => text.first() == Some(byte) && characters(rest, &text[1..]),
        }
    }
    let pattern: Vec<&str> = pattern.split('.').collect();
    let name: Vec<&str> = name.split('.').collect();
    segments(&pattern, &name)
}

/// A rule as the oracle sees it.
#[derive(Debug, Clone)]
struct Told {
    allows: bool,
    action: &'static str,
    topics: Vec<String>,
    groups: Option<Vec<String>>,
}

fn oracle(rules: &[Told], action: &str, topic: &str, group: Option<&str>) -> bool {
    for rule in rules {
        let in_groups = match (&rule.groups, group) {
            (None, _) => true,
            (Some(_), _) if action == "publish" => true,
            (Some(groups), Some(group)) => groups.iter().any(|pattern| fits(pattern, group)),
            (Some(_), None) => false,
        };
        let in_topics = rule.topics.iter().any(|pattern| fits(pattern, topic));
        if [action, "*"].contains(&rule.action) && in_topics && in_groups {
            return rule.allows;
        }
    }
    false
}

fn told_to_policy(rules: &[Told]) -> Policy {
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| {
            let effect = if rule.allows { "allow" } else { "deny" };
            let mut json = serde_json::json!({
                "effect": effect, "action": rule.action, "topics": rule.topics,
            });
            if let Some(groups) = &rule.groups {
                json["groups"] = serde_json::json!(groups);
            }
            json
        })
        .collect();
    policy(&serde_json::Value::from(rules).to_string())
}

fn a_pattern() -> impl Strategy<Value = String> {
    prop::collection::vec("\\*\\*|\\*|a|b|ab|a\\*|\\*b|a\\*b", 1..5)
        .prop_map(|segments| segments.join("."))
}

fn a_rule() -> impl Strategy<Value = Told> {
    let action = prop::sample::select(vec!["publish", "subscribe", "admin", "*"]);
    let topics = prop::collection::vec(a_pattern(), 0..3);
    let groups = prop::option::weighted(0.3, prop::collection::vec(a_pattern(), 0..3));
    (any::<bool>(), action, topics, groups).prop_map(|(allows, action, topics, groups)| Told {
        allows,
        action,
        topics,
        groups,
    })
}

const ACTIONS: [(Action, &str); 3] = [
    (Action::Publish, "publish"),
    (Action::Subscribe, "subscribe"),
    (Action::Admin, "admin"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn answers_are_the_oracles(
        rules in prop::collection::vec(a_rule(), 0..5),
        topic in prop::sample::select(names(SEGMENTS, 4)),
        group in prop::option::of(prop::sample::select(names(SEGMENTS, 4))),
    ) {
        let policy = told_to_policy(&rules);
        for (action, name) in ACTIONS {
            let expected = oracle(&rules, name, &topic, group.as_deref());
            prop_assert_eq!(policy.may(action, &topic, group.as_deref()), expected);
            // A plain name is a pattern that matches only itself.
            let covered = policy.covers(action, &pattern(&topic), group.as_deref());
            prop_assert_eq!(covered == Coverage::All, expected);
        }
    }

    #[test]
    fn coverage_never_promises_too_much(
        rules in prop::collection::vec(a_rule(), 0..5),
        wanted in a_pattern(),
        group in prop::option::of(prop::sample::select(vec!["a", "ab.c"])),
    ) {
        let policy = told_to_policy(&rules);
        let covered = policy.covers(Action::Subscribe, &pattern(&wanted), group);
        for name in names(SEGMENTS, 4).iter().filter(|name| fits(&wanted, name)) {
            let is_allowed = oracle(&rules, "subscribe", name, group);
            prop_assert!(is_allowed || covered != Coverage::All, "{} is not allowed", name);
            prop_assert!(!is_allowed || covered != Coverage::Nothing, "{} is allowed", name);
        }
    }
}

/// Being cautious must not mean saying no to what people write: where stars stand for whole segments, one rule that has
/// all is seen to have all, and one that has nothing to have nothing. Every pair of patterns of up to four segments.
#[test]
fn one_plain_rule_is_judged_exactly() {
    let world = names(&["a", "b", "c"], 7);
    let patterns: Vec<(String, Vec<bool>)> = names(&["a", "b", "*", "**"], 4)
        .into_iter()
        .map(|pattern| {
            let matches = world.iter().map(|name| fits(&pattern, name)).collect();
            (pattern, matches)
        })
        .collect();
    for (allowed, allows) in &patterns {
        let policy = Policy::from_scopes([format!("subscribe:{allowed}").as_str()]);
        let policy = policy.expect("a policy");
        for (wanted, wants) in &patterns {
            let mut both = wants.iter().zip(allows).filter(|(wants, _)| **wants);
            let expected = match (both.clone().all(|both| *both.1), both.any(|both| *both.1)) {
                (true, _) => Coverage::All,
                (false, true) => Coverage::Part,
                (false, false) => Coverage::Nothing,
            };
            let covered = policy.covers(Action::Subscribe, &pattern(wanted), None);
            assert_eq!(covered, expected, "{wanted} under {allowed}");
        }
    }
}

#[test]
fn the_first_rule_that_matches_answers() {
    let policy = policy(
        r#"[{"effect":"allow","action":"subscribe","topics":["orders.public.**"]},
            {"effect":"deny","action":"*","topics":["orders.**.secret"]},
            {"effect":"allow","action":"*","topics":["orders.**"],"groups":["billing-*"]},
            {"effect":"allow","action":"publish","topics":["log.*"]}]"#,
    );
    assert!(policy.may(Action::Subscribe, "orders.public.secret", None));
    assert!(!policy.may(Action::Publish, "orders.a.b.secret", None));
    assert!(policy.may(Action::Subscribe, "orders.new", Some("billing-1")));
    assert!(!policy.may(Action::Subscribe, "orders.new", Some("audit")));
    assert!(
        !policy.may(Action::Subscribe, "orders.new", None),
        "no group is no matching group"
    );
    assert!(!policy.may(Action::Admin, "orders.new", None));
    assert!(
        policy.may(Action::Publish, "orders.new", None),
        "publishing knows no groups"
    );
    assert!(policy.may(Action::Publish, "log.a", None));
    assert!(!policy.may(Action::Subscribe, "log.a", None));
    assert!(
        !policy.may(Action::Publish, "elsewhere", None),
        "the default is no"
    );
}

#[test]
fn a_pattern_that_is_half_allowed_is_not_covered() {
    let policy = policy(
        r#"[{"effect":"allow","action":"subscribe","topics":["a.b.public.**"]},
            {"effect":"deny","action":"subscribe","topics":["a.b.**"]},
            {"effect":"allow","action":"subscribe","topics":["a.**","web.eu-*"]}]"#,
    );
    for (wanted, expected) in [
        ("a.*", Coverage::Part),
        ("a.c.**", Coverage::All),
        ("a.**", Coverage::Part),
        ("a.b.*", Coverage::Part),
        ("a.b.secret.**", Coverage::Nothing),
        ("a.b.public.*", Coverage::All),
        ("**", Coverage::Part),
        ("*.c", Coverage::Part),
        ("x.**", Coverage::Nothing),
        ("web.eu-west-*", Coverage::All),
        ("web.*", Coverage::Part),
        ("web.eu-1", Coverage::All),
        ("web.us-*", Coverage::Nothing),
    ] {
        let covered = policy.covers(Action::Subscribe, &pattern(wanted), None);
        assert_eq!(covered, expected, "{wanted}");
    }
    assert_eq!(
        policy.covers(Action::Publish, &pattern("a.c.**"), None),
        Coverage::Nothing
    );
}

#[test]
fn scopes_allow_what_they_name() {
    let policy = Policy::from_scopes([
        "publish:heartbeat.*",
        "subscribe:process.**",
        "admin:ops.**",
        "openid",
        "publish:not a topic",
        "publish:https://elsewhere",
        "delete:**",
    ]);
    let policy = policy.expect("a policy");
    assert!(policy.may(Action::Publish, "heartbeat.received", None));
    assert!(!policy.may(Action::Publish, "heartbeat.a.b", None));
    assert!(policy.may(Action::Subscribe, "process", Some("g")));
    assert!(policy.may(Action::Subscribe, "process.a.b", None));
    assert!(!policy.may(Action::Publish, "process", None));
    assert!(policy.may(Action::Admin, "ops.x", None));
    let all = Policy::from_scopes(["topic:read", "topic:write"]).expect("a policy");
    assert!(all.may(Action::Subscribe, "x.y", Some("g")) && all.may(Action::Publish, "x.y", None));
    assert!(!all.may(Action::Admin, "x.y", None));
}

#[test]
fn all_and_nothing() {
    for (action, _) in ACTIONS {
        let all = Policy::allow_all();
        assert!(all.may(action, "x.y", None));
        assert_eq!(all.covers(action, &pattern("**"), Some("g")), Coverage::All);
        assert!(!Policy::default().may(action, "x.y", None));
    }
}

#[test]
fn what_cannot_be_understood_is_refused() {
    let good = r#"{"effect":"allow","action":"*","topics":["**"]}"#;
    assert_eq!(
        policy(&format!("[{good}]")),
        policy(&format!(r#" {{"rules":[{good}]}}"#))
    );
    let many = vec!["a"; MAX_PATTERNS + 1];
    let many = serde_json::json!([{"effect": "allow", "action": "*", "topics": many}]).to_string();
    for bad in [
        "",
        "null",
        r#""allow""#,
        r#"{"rules":[],"default":"allow"}"#,
        r#"[{"effect":"permit","action":"*","topics":["**"]}]"#,
        r#"[{"effect":"allow","action":"read","topics":["**"]}]"#,
        r#"[{"effect":"allow","action":"*","topics":"**"}]"#,
        r#"[{"effect":"allow","action":"*","topics":["a..b"]}]"#,
        r#"[{"effect":"allow","action":"*","topics":["a**"]}]"#,
        r#"[{"effect":"allow","action":"*"}]"#,
        r#"[{"effect":"allow","action":"*","topics":["**"],"groups":null}]"#,
        r#"[{"effect":"allow","action":"*","topics":["**"],"group":["g"]}]"#,
        &many,
    ] {
        assert!(Policy::from_json(bad).is_err(), "{bad}");
    }
}
