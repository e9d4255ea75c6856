//! The words of a call in the order that the parser wants. Each command that talks to a server has the flags that say
//! which one, so that the others refuse them; before the command's name they mean the same.

use crate::remote::RemoteArgs;
use clap::{Args, Command};
use std::ffi::OsString;

/// Moves the flags that name a server from before the command to behind it. What is not understood stays where it is,
/// for the parser to complain about.
pub(crate) fn server_flags_behind_command(words: Vec<OsString>) -> Vec<OsString> {
    let known = RemoteArgs::augment_args(Command::new("prombus"));
    let mut others = Vec::new();
    let mut moved = Vec::new();
    let mut words = words.into_iter();
    others.extend(words.next());
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if !text.starts_with('-') {
            others.push(word);
            others.append(&mut moved);
            others.extend(words);
            return others;
        }
        let name = text.strip_prefix("--").unwrap_or_default();
        let (name, has_value) = match name.split_once('=') {
            Some((name, _)) => (name, true),
            None => (name, false),
        };
        if !known
            .get_arguments()
            .any(|known| known.get_long() == Some(name))
        {
            others.push(word);
            continue;
        }
        // All of them take a value.
        moved.push(word);
        if !has_value {
            moved.extend(words.next());
        }
    }
    // There is no command.
    others.append(&mut moved);
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words: Vec<String> = server_flags_behind_command(words)
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        words.join(" ")
    }

    #[test]
    fn flags_that_name_a_server_go_behind_the_command() {
        for (line, expected) in [
            (
                "prombus --url http://h:1 group ls",
                "prombus group --url http://h:1 ls",
            ),
            (
                "prombus --url=h:1 --json --token t topic info a",
                "prombus --json topic --url=h:1 --token t info a",
            ),
            (
                "prombus --client-cert c --client-key k --ca a sub t",
                "prombus sub --client-cert c --client-key k --ca a t",
            ),
            ("prombus group --url h ls", "prombus group --url h ls"),
            ("prombus --verbose group ls", "prombus --verbose group ls"),
            ("prombus --url h", "prombus --url h"),
            ("prombus --url", "prombus --url"),
            ("prombus", "prombus"),
        ] {
            assert_eq!(moved(line), expected);
        }
    }

    #[test]
    fn every_flag_of_a_server_takes_a_value() {
        let known = RemoteArgs::augment_args(Command::new("prombus"));
        for argument in known.get_arguments() {
            assert!(argument.get_action().takes_values(), "{argument}");
        }
    }
}
