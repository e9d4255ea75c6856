//! The root shows the architecture, so nothing else lies there: no plans, logs, scratch files or output.

use crate::tree::{assert_kept, root_entries};

/// What may lie in the root. Folders end in a slash.
const ENTRIES: &[&str] = &[
    // The rooms.
    "api/",
    "bench/",
    "bus/",
    "cli/",
    "client/",
    "connect/",
    "deploy/",
    "docs/",
    "fuzz/",
    "gateway/",
    "interface/",
    "log/",
    "mongo/",
    "replicated/",
    "schema/",
    "sdk/",
    "sim/",
    "sqlite/",
    "store/",
    "tests/",
    "web/",
    // The papers.
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    // The tools.
    ".cargo/",
    ".ci/",
    ".dockerignore",
    ".editorconfig",
    ".gitattributes",
    ".gitignore",
    "Cargo.lock",
    "Cargo.toml",
    "Makefile",
    "clippy.toml",
    "rust-toolchain.toml",
    "rustfmt.toml",
];

#[test]
fn the_root_holds_only_what_belongs_there() {
    assert_kept(&debris(&root_entries()));
}

fn debris(entries: &[String]) -> Vec<String> {
    let strays = entries
        .iter()
        .filter(|entry| !ENTRIES.contains(&entry.as_str()));
    strays
        .map(|entry| {
            format!(
                "{entry} does not belong in the root; if it does, add it to tests/house/root.rs"
            )
        })
        .collect()
}

#[test]
fn a_stray_file_and_a_stray_folder_are_named() {
    let entries = ["log/", "Cargo.toml", "PLAN.md", "scratch/", "Makefile/"].map(str::to_owned);
    let found = debris(&entries);
    assert_eq!(found.len(), 3);
    for (sentence, stray) in found.iter().zip(["PLAN.md", "scratch/", "Makefile/"]) {
        assert!(sentence.starts_with(stray), "{sentence}");
    }
}
