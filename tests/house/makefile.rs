//! The Makefile's verbs: each says what it does, and does it with crates and targets that exist.

use crate::commands::Known;
use crate::tree::{assert_kept, read};
use crate::workspace::packages;

/// A target of the Makefile.
pub(crate) struct Verb<'a> {
    pub(crate) name: &'a str,
    needs: Vec<&'a str>,
    help: Option<&'a str>,
    recipe: Vec<&'a str>,
}

/// The targets of a Makefile, in their order.
pub(crate) fn verbs(makefile: &str) -> Vec<Verb<'_>> {
    let mut verbs: Vec<Verb<'_>> = Vec::new();
    for line in makefile.lines() {
        if let (Some(command), Some(verb)) = (line.strip_prefix('\t'), verbs.last_mut()) {
            verb.recipe.push(command);
        } else if let Some(verb) = parse_target(line) {
            verbs.push(verb);
        }
    }
    verbs
}

#[test]
fn verbs_say_what_they_do() {
    assert_kept(&silent_verbs(&read("Makefile")));
}

#[test]
fn verbs_do_what_exists() {
    let makefile = read("Makefile");
    let verbs = verbs(&makefile);
    let packages = packages();
    let known = Known {
        verbs: verbs.iter().map(|verb| verb.name).collect(),
        packages: &packages,
    };
    assert_kept(&empty_verbs(&verbs, &known));
}

fn silent_verbs(makefile: &str) -> Vec<String> {
    let verbs = verbs(makefile);
    if verbs.is_empty() {
        return vec!["the Makefile has no verbs".to_owned()];
    }
    let phony: Vec<&str> = makefile
        .lines()
        .filter_map(|line| line.strip_prefix(".PHONY:"))
        .flat_map(str::split_whitespace)
        .collect();
    let mut found = Vec::new();
    for verb in verbs {
        if verb.help.is_none_or(str::is_empty) {
            found.push(format!("{}: needs a `## …` for `make help`", verb.name));
        }
        if !phony.contains(&verb.name) {
            found.push(format!(
                "{}: a file of that name would switch it off; add it to .PHONY",
                verb.name
            ));
        }
    }
    found
}

fn empty_verbs(verbs: &[Verb<'_>], known: &Known<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for verb in verbs {
        let unknown = verb.needs.iter().filter(|need| !known.verbs.contains(need));
        found.extend(
            unknown.map(|need| format!("{}: needs {need}, which does not exist", verb.name)),
        );
        let complaints = verb.recipe.iter().flat_map(|line| known.complaints(line));
        found.extend(complaints.map(|complaint| format!("{}: {complaint}", verb.name)));
    }
    found
}

/// `name: needs ## help`, but not an assignment or a special target.
fn parse_target(line: &str) -> Option<Verb<'_>> {
    let (head, help) = match line.split_once("##") {
        Some((head, help)) => (head, Some(help.trim())),
        None => (line, None),
    };
    let (name, needs) = head.split_once(':')?;
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .chars()
            .all(|character| character.is_ascii_lowercase() || character == '-');
    (is_name && !needs.starts_with('=')).then(|| Verb {
        name,
        needs: needs.split_whitespace().collect(),
        help,
        recipe: Vec::new(),
    })
}

mod tests {
    use super::*;

    const GOOD: &str = "LOCKED := x\nflags = y: z\n.PHONY: build test\nbuild: ## Build\n\tcargo build\n\ntest: build ## Test\n\
                        \tcargo test\n\tmake build\n";

    fn empty(makefile: &str) -> Vec<String> {
        let verbs = verbs(makefile);
        let known = Known {
            verbs: verbs.iter().map(|verb| verb.name).collect(),
            packages: &[],
        };
        empty_verbs(&verbs, &known)
    }

    #[test]
    fn verbs_are_read_with_needs_help_and_recipe() {
        let verbs = verbs(GOOD);
        let names: Vec<_> = verbs.iter().map(|verb| verb.name).collect();
        assert_eq!(names, ["build", "test"]);
        assert_eq!(
            (verbs[1].needs.as_slice(), verbs[1].help),
            (["build"].as_slice(), Some("Test"))
        );
        assert_eq!(verbs[1].recipe, ["cargo test", "make build"]);
        assert_eq!((silent_verbs(GOOD), empty(GOOD)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_verb_without_help_or_not_phony_is_named() {
        assert!(silent_verbs(&GOOD.replace(" ## Test", ""))[0].starts_with("test: needs a"));
        assert!(
            silent_verbs(&GOOD.replace(".PHONY: build", ".PHONY:"))[0].starts_with("build: a file")
        );
        assert_eq!(silent_verbs(""), ["the Makefile has no verbs"]);
    }

    #[test]
    fn a_verb_that_does_what_is_not_there_is_named() {
        let bad = GOOD
            .replace("test: build", "test: biuld")
            .replace("cargo test", "cargo test -p gone");
        let expected = [
            "test: needs biuld, which does not exist",
            "test: `cargo test -p gone`: the workspace has no crate gone",
        ];
        assert_eq!(empty(&bad), expected);
    }
}
