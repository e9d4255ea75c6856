//! What the papers tell people to type. README opens with the two commands, one to see it work and one to test it;
//! CI calls the second.

use crate::commands::Known;
use crate::makefile::verbs;
use crate::tree::{assert_kept, read};
use crate::workspace::packages;

/// Papers whose commands are checked.
const PAPERS: &[&str] = &["README.md", "CONTRIBUTING.md"];

#[test]
fn the_readme_opens_with_the_two_commands() {
    assert_kept(&opening_faults(&read("README.md"), &read(".ci/run")));
}

#[test]
fn the_commands_of_the_papers_exist() {
    let makefile = read("Makefile");
    let packages = packages();
    let known = Known {
        verbs: verbs(&makefile).iter().map(|verb| verb.name).collect(),
        packages: &packages,
    };
    let mut broken = Vec::new();
    for paper in PAPERS {
        let text = read(paper);
        let complaints = commands(&text)
            .into_iter()
            .flat_map(|command| known.complaints(command));
        broken.extend(complaints.map(|complaint| format!("{paper}: {complaint}")));
    }
    assert_kept(&broken);
}

fn opening_faults(readme: &str, ci: &str) -> Vec<String> {
    let commands = commands(readme);
    let is_getting_there =
        |command: &&str| !command.starts_with("git ") && !command.starts_with("cd ");
    let mut opening = commands.into_iter().filter(is_getting_there);
    let (Some(first), Some(second)) = (opening.next(), opening.next()) else {
        return vec!["README.md: the first blocks of shell need two commands".to_owned()];
    };
    let mut faults = Vec::new();
    for command in [first, second] {
        if !command.starts_with("make ") && !command.starts_with("cargo ") {
            faults.push(format!("README.md: `{command}` is neither make nor cargo"));
        }
    }
    let second = second.split(" #").next().unwrap_or(second).trim();
    if !calls(ci, second) {
        faults.push(format!(
            ".ci/run does not call `{second}`, the second command of README.md"
        ));
    }
    faults
}

/// Whether a script runs this command; in a comment or between quotes it is only text.
fn calls(script: &str, command: &str) -> bool {
    let mut code = script
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    code.any(|line| {
        line.split('"')
            .step_by(2)
            .any(|unquoted| unquoted.contains(command))
    })
}

/// The lines of the shell blocks of a Markdown text, without prompts and comments.
fn commands(markdown: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut fence = None;
    for line in markdown.lines().map(str::trim) {
        match (line.strip_prefix("```"), fence) {
            (Some(language), None) => fence = Some(language),
            (Some(_), Some(_)) => fence = None,
            (None, Some("sh" | "bash" | "shell" | "console")) => {
                commands.push(line.trim_start_matches("$ "))
            }
            (None, _) => {}
        }
    }
    commands.retain(|command| !command.is_empty() && !command.starts_with('#'));
    commands
}

mod tests {
    use super::*;

    const README: &str = "# prombus\n```rust\nmake();\n```\nTry it:\n```sh\ngit clone x\ncd x\n$ make example   # see it\n\
                          ```\n```sh\nmake test\n```\n";

    #[test]
    fn commands_come_from_shell_blocks_only() {
        assert_eq!(
            commands(README),
            [
                "git clone x",
                "cd x",
                "make example   # see it",
                "make test"
            ]
        );
    }

    #[test]
    fn two_commands_of_which_ci_calls_the_second_are_fine() {
        assert_eq!(
            opening_faults(README, "timeout 9 make test\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_readme_without_them_or_a_ci_that_does_something_else_is_named() {
        assert_eq!(opening_faults("# prombus\n", "make test").len(), 1);
        assert_eq!(
            opening_faults(&README.replace("make test", ""), "make test").len(),
            1
        );
        let other = opening_faults(&README.replace("make example", "./run.sh"), "make test");
        assert!(other[0].contains("./run.sh"), "{other:?}");
        let elsewhere = opening_faults(README, "# make test\necho \"make test\"\ncargo test\n");
        assert!(
            elsewhere[0].contains("does not call `make test`"),
            "{elsewhere:?}"
        );
    }
}
