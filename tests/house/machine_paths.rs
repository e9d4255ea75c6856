//! No file names a place that exists on one machine only.

use crate::tree::{File, assert_kept, files};

/// Folders under which people and machines keep their own things, put together here so that this file does not find
/// itself.
const PRIVATE_FOLDERS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
];

#[test]
fn no_file_names_a_place_of_one_machine() {
    assert_kept(&machine_paths(&files()));
}

fn machine_paths(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (at, line) in file.text.lines().enumerate() {
            if let Some(folder) = PRIVATE_FOLDERS.iter().find(|folder| has_root(line, folder)) {
                found.push(format!(
                    "{}:{}: {folder} is a place of one machine",
                    file.path,
                    at + 1
                ));
            }
        }
    }
    found
}

/// Whether a path in the line begins with this folder; in the middle of a longer path it is just a name.
fn has_root(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|character| character.is_alphanumeric() || "_.-".contains(character))
    })
}

#[test]
fn private_folders_are_found_and_longer_paths_are_not() {
    for folder in PRIVATE_FOLDERS {
        let bad = File::new("docs/a.md", &format!("first\nsee `{folder}notes`\n"));
        assert_eq!(
            machine_paths(&[bad]),
            [format!("docs/a.md:2: {folder} is a place of one machine")]
        );
        let good = File::new(
            "docs/a.md",
            &format!("https://example.org{folder}\nsrc{folder}a\n"),
        );
        assert_eq!(machine_paths(&[good]), Vec::<String>::new());
    }
}
