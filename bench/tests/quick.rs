//! A smoke run: every row works, and the figures are there for people and for programs. What they are is of no
//! interest here.

#![cfg(test)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const LOG_ROWS: [&str; 15] = [
    "append",
    "group-commit",
    "latency",
    "publish",
    "schemas",
    "deliver",
    "read",
    "topics",
    "groups",
    "payloads",
    "ids",
    "wide",
    "open",
    "behind",
    "stored",
];

/// Those of state that need no server.
const STATE_ROWS: [&str; 3] = ["atomic", "changelog", "rebuild"];

/// Those of clusters; the one on MongoDB needs a server that takes long to install.
const CLUSTER_ROWS: [&str; 5] = [
    "cluster-publish",
    "cluster-single",
    "cluster-consume",
    "cluster-cold",
    "cluster-lag",
];

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prombus-bench"))
        .args(arguments)
        .arg("--dir")
        .arg(folder)
        .output()
        .unwrap()
}

#[test]
fn every_row_of_the_log_has_figures() {
    check_figures(&["log"], &LOG_ROWS);
}

#[test]
fn every_row_of_state_has_figures() {
    check_figures(&["state", "--rows", &STATE_ROWS.join(",")], &STATE_ROWS);
}

#[test]
fn every_row_of_clusters_on_nats_has_figures() {
    check_figures(
        &["cluster", "--rows", &CLUSTER_ROWS.join(",")],
        &CLUSTER_ROWS,
    );
}

fn check_figures(arguments: &[&str], rows: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let json = folder.path().join("figures.json");
    let common = ["--quick", "--json", json.to_str().unwrap()];
    let output = bench(&data, &[arguments, &common].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");

    let table = String::from_utf8(output.stdout).unwrap();
    let figures: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let lines = figures["lines"].as_array().unwrap();
    for &row in rows {
        assert!(table.lines().any(|line| line.starts_with(row)), "{table}");
        assert!(lines.iter().any(|line| line["row"] == row), "{row}");
    }
    for line in lines {
        assert!(!line["samples"].as_array().unwrap().is_empty(), "{line}");
        assert!(line["median"].is_number(), "{line}");
        if line["unit"] == "events/s" || line["unit"] == "bytes/s" {
            assert!(line["median"].as_f64().unwrap() > 0.0, "{line}");
        }
    }
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0, "data is left");
}

#[test]
fn one_row_can_be_run_alone_and_mistakes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let output = bench(folder.path(), &["log", "--quick", "--rows", "open"]);
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).unwrap();
    let mut rows = table.lines().skip(1).filter(|line| !line.is_empty());
    assert!(rows.all(|line| line.starts_with("open")), "{table}");

    for arguments in [["log", "--fast"], ["lag", "--quick"]] {
        let output = bench(folder.path(), &arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}
