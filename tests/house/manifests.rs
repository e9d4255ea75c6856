//! Every crate takes the workspace's lints and version, else a new one would quietly go without them.

use crate::tree::{File, assert_kept, files};

/// What a crate's manifest says, section and line.
const REQUIRED: &[(&str, &str)] = &[
    ("[package]", "version.workspace = true"),
    ("[package]", "edition.workspace = true"),
    ("[package]", "rust-version.workspace = true"),
    ("[package]", "license.workspace = true"),
    ("[lints]", "workspace = true"),
];

#[test]
fn crates_take_what_the_workspace_gives() {
    assert_kept(&lonely_manifests(&files()));
}

fn lonely_manifests(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    let manifests = files
        .iter()
        .filter(|file| file.name() == "Cargo.toml" && file.path.contains('/'))
        // A workspace of its own has nothing to inherit from.
        .filter(|file| !file.text.lines().any(|line| line == "[workspace]"));
    for manifest in manifests {
        for (section, line) in REQUIRED {
            if !has_line(&manifest.text, section, line) {
                found.push(format!("{}: {section} lacks `{line}`", manifest.path));
            }
        }
    }
    found
}

fn has_line(manifest: &str, section: &str, wanted: &str) -> bool {
    let lines = manifest.lines().map(str::trim);
    let below = lines.skip_while(|line| *line != section).skip(1);
    below
        .take_while(|line| !line.starts_with('['))
        .any(|line| line == wanted)
}

#[test]
fn a_manifest_that_goes_its_own_way_is_named() {
    let good = "[package]\nversion.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
                license.workspace = true\n\n[lints]\nworkspace = true\n";
    assert_eq!(
        lonely_manifests(&[File::new("log/Cargo.toml", good)]),
        Vec::<String>::new()
    );
    let own_lints = good.replace(
        "[lints]\nworkspace = true",
        "[lints.rust]\nunsafe_code = \"allow\"",
    );
    let found = lonely_manifests(&[File::new("log/Cargo.toml", &own_lints)]);
    assert_eq!(found, ["log/Cargo.toml: [lints] lacks `workspace = true`"]);
    let own_version = good.replace(
        "version.workspace = true\nedition",
        "version = \"9.0.0\"\nedition",
    );
    let found = lonely_manifests(&[File::new("log/Cargo.toml", &own_version)]);
    assert_eq!(
        found,
        ["log/Cargo.toml: [package] lacks `version.workspace = true`"]
    );
}
