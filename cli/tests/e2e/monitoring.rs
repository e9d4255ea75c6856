//! The dashboard and the alert rules in `deploy/monitoring/` only use metrics that a server has.

use crate::server::Server;
use serde_json::Value;
use std::collections::BTreeSet;

const DASHBOARD: &str = include_str!("../../../deploy/monitoring/grafana.json");
const ALERTS: &str = include_str!("../../../deploy/monitoring/alerts.yaml");

/// Words of PromQL, labels and Prometheus' own metrics.
const NOT_METRICS: &[&str] = &[
    "and",
    "by",
    "deriv",
    "group",
    "histogram_quantile",
    "increase",
    "job",
    "label_values",
    "le",
    "m",
    "prombus",
    "rate",
    "sum",
    "topic",
    "up",
    "__rate_interval",
];

/// The names in an expression, without what stands in quotes.
fn names(expression: &str) -> BTreeSet<String> {
    let unquoted: String = expression
        .split('"')
        .step_by(2)
        .collect::<Vec<_>>()
        .join(" ");
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    unquoted
        .split(|character: char| !is_name(character))
        .filter(|word| word.starts_with(|first: char| first.is_ascii_lowercase() || first == '_'))
        .filter(|word| !NOT_METRICS.contains(word))
        .map(str::to_owned)
        .collect()
}

/// The names that a server exposes, with those that histograms and summaries have beside their own.
fn exposed() -> BTreeSet<String> {
    let server = Server::start(&["--store", "memory:"]);
    assert_eq!(server.post("/publish/t", "1").0, 200);
    let (_, text) = server.get("/metrics");
    let mut names = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a kind");
        names.insert(name.to_owned());
        if matches!(kind, "histogram" | "summary") {
            names.extend(["_bucket", "_sum", "_count"].map(|suffix| format!("{name}{suffix}")));
        }
    }
    names
}

#[test]
fn dashboards_and_alerts_use_metrics_that_there_are() {
    let exposed = exposed();
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().expect("targets");
        targets
            .iter()
            .map(|target| target["expr"].as_str().expect("an expression").to_owned())
    });
    let rules = ALERTS
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    let expressions: Vec<String> = targets.chain(rules.map(str::to_owned)).collect();
    assert!(expressions.len() > 20);
    for expression in expressions {
        let used = names(&expression);
        assert!(
            !used.is_empty() || expression.starts_with("up{"),
            "{expression}"
        );
        for name in used {
            assert!(exposed.contains(&name), "{name} in {expression}");
        }
    }
}

#[test]
fn a_name_that_no_server_has_is_found() {
    let found = names(r#"sum by (topic) (rate(events_lost_total{topic=~"x"}[5m])) > 0"#);
    assert_eq!(found, BTreeSet::from(["events_lost_total".to_owned()]));
}
