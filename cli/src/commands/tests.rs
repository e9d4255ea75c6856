//! Every command has examples in its help, and every example is a command line that parses.

use super::Cli;
use clap::{Command, CommandFactory};

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_examples_that_parse() {
    let mut command = Cli::command();
    command.build();
    check(&command, "prombus");
}

fn check(command: &Command, path: &str) {
    for inner in command.get_subcommands() {
        if inner.get_name() != "help" {
            check(inner, &format!("{path} {}", inner.get_name()));
        }
    }
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let (_, examples) = help
        .split_once("Examples:\n")
        .unwrap_or_else(|| panic!("{path} has no examples"));
    let lines: Vec<&str> = examples.lines().map(str::trim).collect();
    assert!(!lines.is_empty(), "{path}");
    for line in lines.into_iter().filter(|line| !line.is_empty()) {
        let call = line.rsplit("| ").find(|part| part.starts_with("prombus "));
        let call = call.unwrap_or_else(|| panic!("{path}: {line} does not call prombus"));
        let words = words(call);
        if let Err(error) = Cli::command().try_get_matches_from(&words) {
            panic!("{path}: {line}\n{error}");
        }
        let own = path.split(' ').skip(1);
        let is_own = own
            .clone()
            .all(|word| words.iter().any(|other| other == word));
        assert!(is_own, "{path}: {line} is an example of another command");
    }
}

/// The words of a line of shell, as far as examples need it: single quotes and redirections.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    let mut skip_rest = false;
    for character in line.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            '<' | '>' if !is_quoted => skip_rest = true,
            _ => {}
        }
        if skip_rest {
            break;
        }
        if !(character == '\'' || character == ' ' && !is_quoted)
            && let Some(word) = words.last_mut()
        {
            word.push(character);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
