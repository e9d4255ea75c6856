//! The repository as the rules see it: its text files, without what git ignores.

use crate::ignored::Ignored;
use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository.
pub(crate) struct File {
    /// Relative to the root, with forward slashes.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

impl File {
    /// A file as a rule's own test writes it.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Whether its name ends in a dot and one of these.
    pub(crate) fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = Path::new(&self.path).extension();
        extension.is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("tests/ lies in the root").to_owned()
}

/// All text files of the repository, in the order of their paths. Fixtures that are not UTF-8 are left out.
pub(crate) fn files() -> Vec<File> {
    let mut files = Vec::new();
    collect(&root(), "", &ignored(), &mut files);
    assert!(
        !files.is_empty(),
        "nothing was read, so nothing was checked"
    );
    files
}

/// The names in the root that git does not ignore; folders end in a slash.
pub(crate) fn root_entries() -> Vec<String> {
    let entries = sorted_entries(&root(), "", &ignored());
    let name = |(path, is_folder)| if is_folder { format!("{path}/") } else { path };
    entries.into_iter().map(name).collect()
}

/// One file by its path from the root; empty where there is none, so that the rules that need it say so.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// Ends the test with every sentence, if there are any.
#[track_caller]
pub(crate) fn assert_kept(broken: &[String]) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

fn ignored() -> Ignored {
    Ignored::parse(&read(".gitignore")).expect("the rules read .gitignore")
}

fn collect(root: &Path, folder: &str, ignored: &Ignored, files: &mut Vec<File>) {
    for (path, is_folder) in sorted_entries(root, folder, ignored) {
        if is_folder {
            collect(root, &path, ignored, files);
        } else if let Ok(text) = fs::read_to_string(root.join(&path)) {
            files.push(File { path, text });
        }
    }
}

/// Relative paths, and whether each is a folder. Links are not followed.
fn sorted_entries(root: &Path, folder: &str, ignored: &Ignored) -> Vec<(String, bool)> {
    let listing = fs::read_dir(root.join(folder)).expect("folders of the repository are readable");
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry.expect("a folder's entry is readable");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        if !ignored.covers(&path) {
            entries.push((path, entry.file_type().is_ok_and(|kind| kind.is_dir())));
        }
    }
    entries.sort();
    entries
}

#[test]
fn the_tree_holds_this_file_and_no_build_output() {
    let files = files();
    assert!(files.iter().any(|file| file.path == "tests/house/tree.rs"));
    assert!(!files.iter().any(|file| file.path.starts_with("target/")));
    assert!(!files.iter().any(|file| file.path.starts_with(".git/")));
    assert!(root_entries().contains(&"tests/".to_owned()));
}

#[test]
#[should_panic(expected = "a.rs is bad")]
fn a_broken_rule_ends_the_test() {
    assert_kept(&["a.rs is bad".to_owned()]);
}
