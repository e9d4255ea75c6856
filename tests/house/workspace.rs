//! The crates of the workspace and their dependencies, from `cargo metadata`.

use crate::tree;
use serde_json::Value;
use std::process::Command;

/// A crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder from the root.
    pub(crate) folder: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A line of a crate's manifest that names another crate.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether only tests, examples and benches of the crate see it.
    pub(crate) is_dev: bool,
    /// Whether a feature has to ask for it.
    pub(crate) is_optional: bool,
}

/// The current workspace.
pub(crate) fn packages() -> Vec<Package> {
    let root = tree::root();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .current_dir(&root)
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    parse(&metadata)
}

/// What the rules need of `cargo metadata --no-deps`.
pub(crate) fn parse(metadata: &Value) -> Vec<Package> {
    let root = text(&metadata["workspace_root"]);
    list(&metadata["packages"])
        .map(|package| parse_package(package, &root))
        .collect()
}

fn parse_package(package: &Value, root: &str) -> Package {
    let manifest = text(&package["manifest_path"]);
    let folder = manifest
        .trim_start_matches(root)
        .trim_end_matches("Cargo.toml")
        .trim_matches('/');
    let dependency = |dependency: &Value| Dependency {
        name: text(&dependency["name"]),
        is_dev: dependency["kind"] == "dev",
        is_optional: dependency["optional"] == true,
    };
    Package {
        name: text(&package["name"]),
        folder: folder.to_owned(),
        dependencies: list(&package["dependencies"]).map(dependency).collect(),
    }
}

/// A field that cargo always writes; a change of its format must not make the rules pass for want of anything to check.
fn text(value: &Value) -> String {
    value
        .as_str()
        .expect("cargo metadata has a text here")
        .to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value
        .as_array()
        .expect("cargo metadata has a list here")
        .iter()
}

#[test]
fn a_crate_is_read_with_its_folder_and_dependencies() {
    let metadata = serde_json::json!({
        "workspace_root": "/src/house",
        "packages": [{
            "name": "prombus-store",
            "manifest_path": "/src/house/store/Cargo.toml",
            "dependencies": [{"name": "prombus-log", "kind": null}, {"name": "proptest", "kind": "dev"}],
        }],
    });
    let packages = parse(&metadata);
    assert_eq!(packages.len(), 1);
    assert_eq!(
        (packages[0].name.as_str(), packages[0].folder.as_str()),
        ("prombus-store", "store")
    );
    let dependencies = packages[0].dependencies.iter();
    let dependencies: Vec<_> = dependencies
        .map(|found| (found.name.as_str(), found.is_dev))
        .collect();
    assert_eq!(dependencies, [("prombus-log", false), ("proptest", true)]);
}

#[test]
fn the_workspace_holds_this_crate() {
    let packages = packages();
    let this = packages
        .iter()
        .find(|package| package.name == "prombus-tests")
        .unwrap();
    assert_eq!(this.folder, "tests");
}
