//! Names of files and modules: `foo.rs` beside `foo/`, and no module named after everything and nothing.

use crate::tree::{File, assert_kept, files};

/// Names that say nothing of what is inside, so that everything ends up there.
const SINKS: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc"];

#[test]
fn modules_are_named_after_what_they_own() {
    assert_kept(&empty_names(&files()));
}

#[test]
fn a_module_lies_beside_its_folder() {
    assert_kept(&inner_modules(&files()));
}

fn inner_modules(files: &[File]) -> Vec<String> {
    let inner = files.iter().filter(|file| file.name() == "mod.rs");
    inner
        .map(|file| {
            format!(
                "{}: name it after its folder and put it beside it",
                file.path
            )
        })
        .collect()
}

fn empty_names(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.has_extension(&["rs", "ts", "tsx", "js", "mjs", "css"]))
    {
        let parts = file
            .path
            .split('/')
            .map(|part| part.split('.').next().unwrap_or(part));
        let in_path = parts.filter(|part| SINKS.contains(part));
        let inline = file
            .text
            .lines()
            .filter_map(inline_module)
            .filter(|name| SINKS.contains(name));
        for name in in_path.chain(inline) {
            found.push(format!(
                "{}: {name} says nothing of what is inside",
                file.path
            ));
        }
    }
    found
}

/// The name of a module whose body begins on this line.
fn inline_module(line: &str) -> Option<&str> {
    let (declaration, _) = line.split_once('{')?;
    let mut words = declaration
        .split_whitespace()
        .skip_while(|word| word.starts_with("pub"));
    (words.next() == Some("mod")).then(|| words.next())?
}

#[test]
fn inner_modules_are_named() {
    let bad = File::new("log/src/record/mod.rs", "");
    let good = File::new("log/src/record.rs", "");
    assert_eq!(
        inner_modules(&[bad, good]),
        ["log/src/record/mod.rs: name it after its folder and put it beside it"]
    );
}

#[test]
fn sinks_are_named_as_file_folder_and_inline_module() {
    for path in [
        "bus/src/utils.rs",
        "bus/tests/common/setup.rs",
        "web/helpers.ts",
    ] {
        assert_eq!(empty_names(&[File::new(path, "")]).len(), 1, "{path}");
    }
    let inline = File::new("bus/src/a.rs", "pub(crate) mod utils {\n}\n");
    assert_eq!(
        empty_names(&[inline]),
        ["bus/src/a.rs: utils says nothing of what is inside"]
    );
    let good = File::new(
        "bus/src/common_prefix.rs",
        "mod lanes {\n}\nfn utils() {\n}\n",
    );
    assert_eq!(empty_names(&[good]), Vec::<String>::new());
}
