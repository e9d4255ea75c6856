//! What a scrape shows of what was counted.

use super::*;
use std::time::Duration;

/// The value of a sample, by its name and labels as they are written.
fn value(text: &str, sample: &str) -> Option<String> {
    let values = text.lines().filter_map(|line| line.strip_prefix(sample));
    let mut values = values.filter_map(|rest| rest.strip_prefix(' '));
    let value = values.next().map(str::to_owned);
    assert_eq!(values.next(), None, "{sample} stands twice");
    value
}

#[test]
fn every_name_is_there_from_the_start() {
    let text = Metrics::new().render();
    for (name, kind) in [
        ("events_published_total", "counter"),
        ("events_delivered_total", "counter"),
        ("events_acked_total", "counter"),
        ("events_nacked_total", "counter"),
        ("events_redelivered_total", "counter"),
        ("events_dead_lettered_total", "counter"),
        ("events_inflight", "gauge"),
        ("ws_inflight", "gauge"),
        ("group_lag_events", "gauge"),
        ("group_oldest_unacked_age_ms", "gauge"),
        ("group_partitions_held", "gauge"),
        ("group_partitions_unassigned", "gauge"),
        ("delivery_latency_ms", "histogram"),
        ("delivery_handler_duration_ms", "histogram"),
        ("subscribe_poll_duration_ms", "histogram"),
        ("ws_connections", "gauge"),
        ("rate_limited_total", "counter"),
        ("store_bytes", "gauge"),
        ("store_damage", "gauge"),
        ("group_write_failures_total", "counter"),
        ("running_groups", "gauge"),
        ("delivery_memory_bytes", "gauge"),
        ("delivery_memory_limit_bytes", "gauge"),
        ("fsync_duration_ms", "summary"),
    ] {
        let line = format!("# TYPE {name} {kind}\n");
        assert_eq!(text.matches(&line).count(), 1, "{name}");
        assert_eq!(
            text.matches(&format!("# HELP {name} ")).count(),
            1,
            "{name}"
        );
    }
}

#[test]
fn every_metric_is_also_there_with_a_prefix_and_in_seconds() {
    let metrics = Metrics::new();
    let group = metrics.group("t", "g");
    group.latency.observe(Duration::from_micros(90));
    group.latency.observe(Duration::from_micros(300));
    group.latency.observe_ms(20_000);
    metrics.sample_groups([(
        &"t".into(),
        &"g".into(),
        GroupSample {
            oldest_unacked_ms: 1_500,
            ..GroupSample::default()
        },
    )]);
    let text = metrics.render();
    let labels = "topic=\"t\",group=\"g\"";
    for (sample, expected) in [
        (
            format!("prombus_delivery_latency_seconds_bucket{{{labels},le=\"0.0001\"}}"),
            "1",
        ),
        (
            format!("prombus_delivery_latency_seconds_bucket{{{labels},le=\"0.00025\"}}"),
            "1",
        ),
        (
            format!("prombus_delivery_latency_seconds_bucket{{{labels},le=\"0.0005\"}}"),
            "2",
        ),
        (
            format!("prombus_delivery_latency_seconds_bucket{{{labels},le=\"10\"}}"),
            "2",
        ),
        (
            format!("prombus_delivery_latency_seconds_bucket{{{labels},le=\"+Inf\"}}"),
            "3",
        ),
        (
            format!("prombus_delivery_latency_seconds_sum{{{labels}}}"),
            "20.00039",
        ),
        (
            format!("delivery_latency_ms_bucket{{{labels},le=\"5\"}}"),
            "2",
        ),
        (format!("delivery_latency_ms_sum{{{labels}}}"), "20000.390"),
        (
            format!("prombus_group_oldest_unacked_age_seconds{{{labels}}}"),
            "1.5",
        ),
        (format!("group_oldest_unacked_age_ms{{{labels}}}"), "1500"),
        ("prombus_ws_connections".to_owned(), "0"),
        (
            format!(
                "prombus_build_info{{version=\"{}\"}}",
                env!("CARGO_PKG_VERSION")
            ),
            "1",
        ),
    ] {
        assert_eq!(value(&text, &sample).as_deref(), Some(expected), "{sample}");
    }
    let contract = text
        .lines()
        .filter(|line| line.starts_with("delivery_latency_ms_bucket"));
    assert_eq!(contract.count(), HISTOGRAM_BOUNDS_MS.len() + 1);
}

/// The whole text of a small registry, so that a change of the format shows.
#[test]
fn the_text_is_what_prometheus_reads() {
    let metrics = Metrics::new();
    metrics.topic("a.b").published.add(3);
    let group = metrics.group("a.b", "g");
    group.delivered.add(2);
    group.acked.increment();
    group.inflight.add(2);
    group.inflight.sub(1);
    group.latency.observe_ms(5);
    group.latency.observe(Duration::from_micros(5_001));
    group.latency.observe_ms(7_000);
    let text = metrics.render();
    let published = "# HELP events_published_total Events stored.\n\
                     # TYPE events_published_total counter\n\
                     events_published_total{topic=\"a.b\"} 3\n\
                     # HELP events_delivered_total ";
    assert!(text.starts_with(published), "{text}");
    let labels = "{topic=\"a.b\",group=\"g\"}";
    for (name, expected) in [
        ("events_delivered_total", "2"),
        ("events_acked_total", "1"),
        ("events_nacked_total", "0"),
        ("events_inflight", "1"),
        ("delivery_latency_ms_sum", "7010.001"),
        ("delivery_latency_ms_count", "3"),
        ("delivery_handler_duration_ms_count", "0"),
    ] {
        let sample = format!("{name}{labels}");
        assert_eq!(value(&text, &sample).as_deref(), Some(expected), "{name}");
    }
    let buckets = ["5", "10", "25", "50", "100", "250", "500", "1000", "+Inf"];
    for (bound, expected) in buckets.iter().zip([1, 2, 2, 2, 2, 2, 2, 2, 3]) {
        let sample =
            format!("delivery_latency_ms_bucket{{topic=\"a.b\",group=\"g\",le=\"{bound}\"}}");
        assert_eq!(value(&text, &sample), Some(expected.to_string()), "{bound}");
    }
    assert!(text.ends_with('\n'));
}

#[test]
fn global_numbers_are_shown_without_labels() {
    let metrics = Metrics::new();
    metrics.connections.add(4);
    metrics.rate_limited(Limit::TopicPublish).add(2);
    let sample = |bytes, syncs, sync_micros| StoreSample {
        bytes,
        syncs,
        sync_micros,
        damage: 5,
    };
    metrics.sample_store(sample(900, 3, 12_500));
    metrics.sample_store(sample(700, 2, 9_000));
    let text = metrics.render();
    for (sample, expected) in [
        ("ws_connections", "4"),
        ("rate_limited_total{limit=\"conn_publish\"}", "0"),
        ("rate_limited_total{limit=\"conn_delivery\"}", "0"),
        ("rate_limited_total{limit=\"topic_publish\"}", "2"),
        ("store_bytes", "700"),
        ("store_damage", "5"),
        // A scrape that crossed a later one does not take counts back.
        ("fsync_duration_ms_sum", "12.500"),
        ("fsync_duration_ms_count", "3"),
    ] {
        assert_eq!(value(&text, sample).as_deref(), Some(expected), "{sample}");
    }
}

#[test]
fn a_copy_is_shown_where_there_is_one() {
    let metrics = Metrics::new();
    assert!(!metrics.render().contains("copy_applied_position"));
    metrics.sample_copy(Some(CopySample {
        applied: 90,
        first: 41,
        last: 95,
        log_bytes: None,
        snapshot: 40,
        snapshot_at_ms: 1_700_000_000_999,
        bytes_since_snapshot: 1234,
        round_trip_micros: 1_500,
    }));
    let text = metrics.render();
    for (sample, expected) in [
        ("copy_applied_position", "90"),
        ("copy_lag_positions", "5"),
        ("shared_log_first_position", "41"),
        ("shared_log_last_position", "95"),
        ("snapshot_position", "40"),
        ("snapshot_timestamp_seconds", "1700000000"),
        ("bytes_since_snapshot", "1234"),
        ("shared_log_round_trip_ms", "1.500"),
        ("prombus_shared_log_round_trip_seconds", "0.0015"),
    ] {
        assert_eq!(value(&text, sample).as_deref(), Some(expected), "{sample}");
    }
    assert!(!text.contains("shared_log_bytes"), "it is not known");
}

#[test]
fn labels_and_help_are_escaped() {
    let metrics = Metrics::new();
    metrics.topic("a\"b\\c\nd").published.increment();
    let text = metrics.render();
    let sample = r#"events_published_total{topic="a\"b\\c\nd"}"#;
    assert_eq!(value(&text, sample).as_deref(), Some("1"));
    let mut text = Text::new();
    text.head("n", "gauge", "say \"a\\b\"\nc");
    assert_eq!(
        text.finish(),
        "# HELP n say \"a\\\\b\"\\nc\n# TYPE n gauge\n"
    );
}

#[test]
fn what_does_not_fit_is_counted_together() {
    let metrics = Metrics::new();
    for at in 0..MAX_TOPIC_SERIES + 5 {
        metrics.topic(&format!("t{at}")).published.increment();
    }
    for at in 0..MAX_GROUP_SERIES + 5 {
        metrics.group("t", &format!("g{at}")).acked.add(2);
    }
    metrics.topic("t0").published.increment();
    let text = metrics.render();
    let series = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(series("events_published_total{"), MAX_TOPIC_SERIES + 1);
    assert_eq!(series("events_acked_total{"), MAX_GROUP_SERIES + 1);
    let other = value(&text, "events_published_total{topic=\"__other__\"}");
    assert_eq!(other.as_deref(), Some("5"));
    let other = "events_acked_total{topic=\"__other__\",group=\"__other__\"}";
    assert_eq!(value(&text, other).as_deref(), Some("10"));
    let first = value(&text, "events_published_total{topic=\"t0\"}");
    assert_eq!(first.as_deref(), Some("2"));
}

#[test]
fn samples_of_groups_that_do_not_fit_are_added_up() {
    let metrics = Metrics::new();
    let topic: Arc<str> = "t".into();
    let names: Vec<Arc<str>> = (0..MAX_GROUP_SERIES + 3)
        .map(|at| format!("g{at}").into())
        .collect();
    let sample = GroupSample {
        redelivered: 2,
        dead_lettered: 1,
        lag: 10,
        oldest_unacked_ms: 700,
        inflight: 3,
        partitions_held: 5,
        partitions_unassigned: 0,
    };
    // Taking them over again changes nothing.
    for _ in 0..2 {
        metrics.sample_groups(names.iter().map(|group| (&topic, group, sample)));
    }
    let text = metrics.render();
    for (name, own, together) in [
        ("events_redelivered_total", "2", "6"),
        ("events_dead_lettered_total", "1", "3"),
        ("group_lag_events", "10", "30"),
        ("events_inflight", "3", "9"),
        ("group_oldest_unacked_age_ms", "700", "700"),
        ("group_partitions_held", "5", "15"),
        ("group_partitions_unassigned", "0", "0"),
    ] {
        let labels = "{topic=\"t\",group=\"g0\"}";
        assert_eq!(
            value(&text, &format!("{name}{labels}")).as_deref(),
            Some(own),
            "{name}"
        );
        let labels = "{topic=\"__other__\",group=\"__other__\"}";
        let found = value(&text, &format!("{name}{labels}"));
        assert_eq!(found.as_deref(), Some(together), "{name}");
    }
}

#[test]
fn what_is_forgotten_makes_room() {
    let metrics = Metrics::new();
    for at in 0..MAX_GROUP_SERIES {
        metrics.group("t", &format!("g{at}"));
    }
    metrics.forget_group("t", "g0");
    metrics.group("t", "new").acked.increment();
    metrics.topic("t").published.increment();
    let text = metrics.render();
    assert_eq!(
        value(&text, "events_acked_total{topic=\"t\",group=\"g0\"}"),
        None
    );
    let new = value(&text, "events_acked_total{topic=\"t\",group=\"new\"}");
    assert_eq!(new.as_deref(), Some("1"));
    assert!(!text.contains(OTHER));
    metrics.forget_topic("t");
    assert!(!metrics.render().contains("topic=\"t\""));
}

#[test]
fn many_may_count_at_once() {
    let metrics = Metrics::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let group = metrics.group("t", "g");
                for ms in 0..1_000 {
                    group.acked.increment();
                    group.latency.observe_ms(ms);
                }
            });
        }
    });
    let group = metrics.group("t", "g");
    assert_eq!(group.acked.get(), 4_000);
    assert_eq!(group.latency.cumulative().last(), Some(&4_000));
    assert_eq!(group.latency.sum_micros(), 4 * 999 * 500 * 1_000);
}
