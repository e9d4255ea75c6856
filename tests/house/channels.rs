//! Every channel has a limit. Clippy bans the unbounded ones too, but that ban can be lifted on the spot; this one
//! cannot.

use crate::tree::{File, assert_kept, files};

/// How unbounded channels are made. A `channel()` without a size is the standard library's.
const UNBOUNDED: &[&str] = &[
    concat!("unbounded", "_channel"),
    concat!("mpsc::", "channel()"),
    concat!("mpsc::", "channel::<"),
    concat!("mpsc::", "unbounded"),
    concat!("channel::", "unbounded"),
    concat!("flume::", "unbounded"),
];

#[test]
fn channels_have_limits() {
    assert_kept(&limitless(&files()));
}

fn limitless(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.has_extension(&["rs"])) {
        for (at, line) in file.text.lines().enumerate() {
            if is_limitless(line) {
                found.push(format!(
                    "{}:{}: a channel without a limit",
                    file.path,
                    at + 1
                ));
            }
        }
    }
    found
}

fn is_limitless(line: &str) -> bool {
    // A bounded channel with its type spelt out, `mpsc::channel::<T>(limit)`, is told by its argument.
    let is_bounded = line.split_once("channel::<").is_some_and(|(_, rest)| {
        let argument = rest.split_once(">(").map(|(_, argument)| argument);
        argument.is_some_and(|argument| !argument.starts_with(')'))
    });
    !is_bounded && UNBOUNDED.iter().any(|spelling| line.contains(spelling))
}

#[test]
fn unbounded_spellings_are_found_and_bounded_ones_are_not() {
    for spelling in UNBOUNDED {
        let call = spelling.trim_end_matches("()").trim_end_matches("::<");
        let bad = File::new(
            "bus/src/a.rs",
            &format!("fn f() {{\n    let pair = {call}();\n}}\n"),
        );
        assert_eq!(
            limitless(&[bad]),
            ["bus/src/a.rs:2: a channel without a limit"]
        );
    }
    let typed = format!("let pair = {}u64>();\n", UNBOUNDED[2]);
    assert_eq!(limitless(&[File::new("a.rs", &typed)]).len(), 1);
    let good = "let a = mpsc::sync_channel(LIMIT);\nlet b = mpsc::channel(LIMIT);\nlet c = mpsc::channel::<u64>(LIMIT);\n";
    assert_eq!(limitless(&[File::new("a.rs", good)]), Vec::<String>::new());
}
