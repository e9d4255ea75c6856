//! No file grows past what a reader can hold: above the limit it is two rooms.

use crate::tree::{File, assert_kept, files};

/// The most lines a source file may have.
const MAX_LINES: usize = 600;

#[test]
fn files_are_short() {
    assert_kept(&long_files(&files()));
}

fn long_files(files: &[File]) -> Vec<String> {
    let sources = files
        .iter()
        .filter(|file| file.has_extension(&["rs", "ts", "tsx", "js", "mjs", "css"]));
    let counted = sources.map(|file| (file, file.text.lines().count()));
    counted
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(file, lines)| {
            format!(
                "{} has {lines} lines, more than {MAX_LINES}: it is two rooms",
                file.path
            )
        })
        .collect()
}

#[test]
fn one_line_more_than_the_limit_is_named() {
    let full = File::new("web/a.ts", &"x\n".repeat(MAX_LINES));
    let prose = File::new("docs/format.md", &"x\n".repeat(MAX_LINES + 1));
    assert_eq!(long_files(&[full, prose]), Vec::<String>::new());
    let long = File::new("log/src/a.rs", &"x\n".repeat(MAX_LINES + 1));
    assert_eq!(
        long_files(&[long]),
        ["log/src/a.rs has 601 lines, more than 600: it is two rooms"]
    );
}
