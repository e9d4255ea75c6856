//! Every file of Rust says at its top what it owns.

use crate::tree::{File, assert_kept, files};

/// A file with fewer lines of code than this speaks for itself.
const TRIVIAL_LINES: usize = 8;

#[test]
fn files_say_what_they_own() {
    assert_kept(&missing_heads(&files()));
}

fn missing_heads(files: &[File]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.has_extension(&["rs"]));
    let headless = rust.filter(|file| !is_trivial(&file.text) && !file.text.starts_with("//! "));
    headless
        .map(|file| format!("{}: begin with `//!` and say what the file owns", file.path))
        .collect()
}

fn is_trivial(text: &str) -> bool {
    text.lines().filter(|line| !line.trim().is_empty()).count() < TRIVIAL_LINES
}

#[test]
fn a_long_file_without_a_head_is_named() {
    let code = "fn f() {}\n".repeat(TRIVIAL_LINES);
    let bad = File::new("log/src/a.rs", &code);
    assert_eq!(
        missing_heads(&[bad]),
        ["log/src/a.rs: begin with `//!` and say what the file owns"]
    );
    let empty_head = File::new("log/src/b.rs", &format!("//!\n{code}"));
    assert_eq!(missing_heads(&[empty_head]).len(), 1);
    let good = File::new("log/src/c.rs", &format!("//! Owns f.\n{code}"));
    let short = File::new("log/src/d.rs", "mod a;\n\n\n\n\n\n\n\n\n");
    assert_eq!(missing_heads(&[good, short]), Vec::<String>::new());
}
