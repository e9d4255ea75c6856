//! Nothing is left for later in the code: no notes to oneself, no placeholders, no tests that are switched off.

use crate::tree::{File, assert_kept, files};

/// Words that mark work which is not done. They are put together here, so that this file does not find itself.
const NOTES: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Code that stands for code to come, and tests that do not run.
const PLACEHOLDERS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
];

#[test]
fn nothing_is_left_for_later() {
    assert_kept(&leftovers(&files()));
}

fn leftovers(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_code(file)) {
        for (at, line) in file.text.lines().enumerate() {
            let note = NOTES.iter().find(|note| has_word(line, note));
            let placeholder = || PLACEHOLDERS.iter().find(|code| line.contains(*code));
            if let Some(what) = note.or_else(placeholder) {
                found.push(format!(
                    "{}:{}: {what} is left for later",
                    file.path,
                    at + 1
                ));
            }
        }
    }
    found
}

fn is_code(file: &File) -> bool {
    const EXTENSIONS: &[&str] = &[
        "rs", "ts", "tsx", "js", "mjs", "css", "html", "py", "sh", "toml", "yml",
    ];
    file.has_extension(EXTENSIONS) || file.name() == "Makefile" || file.path.starts_with(".ci/")
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[test]
fn notes_and_placeholders_are_found() {
    for note in NOTES {
        let bad = File::new("bus/src/a.rs", &format!("fn f() {{}}\n// {note}: later\n"));
        assert_eq!(
            leftovers(&[bad]),
            [format!("bus/src/a.rs:2: {note} is left for later")]
        );
    }
    for code in PLACEHOLDERS {
        assert_eq!(leftovers(&[File::new("Makefile", code)]).len(), 1);
    }
}

#[test]
fn words_that_only_contain_a_note_and_texts_for_people_are_fine() {
    let inside = format!("let {}_LIST = MAX{};\n", NOTES[0], NOTES[2]);
    let prose = File::new("docs/a.md", NOTES[0]);
    assert_eq!(
        leftovers(&[File::new("a.rs", &inside), prose]),
        Vec::<String>::new()
    );
}
