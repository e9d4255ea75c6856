//! Metrics of the gateway, in the text format of Prometheus.
//!
//! Callers look up a [`TopicSeries`] or [`GroupSeries`] once and keep it; counting is then a relaxed addition without a
//! lock. Counts of the bus and the store are sampled at each scrape. The number of series is bounded: topics and groups
//! beyond it are counted together as `__other__`.

mod bounded;
mod process;
mod replication;
mod series;
mod text;
mod values;

pub use replication::CopySample;
pub use series::{GroupSample, GroupSeries, StoreSample, TopicSeries};
pub use text::CONTENT_TYPE;
pub use values::{Counter, Gauge, HISTOGRAM_BOUNDS_MICROS, HISTOGRAM_BOUNDS_MS, Histogram};

use crate::limits::Limit;
use bounded::Bounded;
use replication::Replication;
use series::{GROUP_COUNTERS, GROUP_GAUGES, GROUP_HISTOGRAMS, PARTITION_GAUGES};
use std::sync::Arc;
use text::{Labels, Naming, Text};
use values::Ratio;

/// The most topics that are counted apart.
pub const MAX_TOPIC_SERIES: usize = 1_000;
/// The most groups that are counted apart.
pub const MAX_GROUP_SERIES: usize = 1_000;
/// The label of what is not counted apart.
pub const OTHER: &str = "__other__";

/// All that is counted.
#[derive(Debug)]
pub struct Metrics {
    /// Sockets that are open.
    pub connections: Gauge,
    /// What was rejected or throttled, in the order of [`Limit::ALL`].
    rate_limited: [Counter; Limit::ALL.len()],
    store_bytes: Gauge,
    store_damage: Gauge,
    delivery_memory: Gauge,
    delivery_memory_limit: Gauge,
    fsync: Ratio,
    group_write_failures: Counter,
    running_groups: Gauge,
    replication: Replication,
    topics: Bounded<Arc<str>, TopicSeries>,
    groups: Bounded<(Arc<str>, Arc<str>), GroupSeries>,
    /// Counts what became of spans.
    #[cfg(feature = "otlp")]
    spans: Option<crate::spans::Spans>,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self {
            connections: Gauge::default(),
            rate_limited: Default::default(),
            store_bytes: Gauge::default(),
            store_damage: Gauge::default(),
            delivery_memory: Gauge::default(),
            delivery_memory_limit: Gauge::default(),
            fsync: Ratio::default(),
            group_write_failures: Counter::default(),
            running_groups: Gauge::default(),
            replication: Replication::default(),
            topics: Bounded::new(MAX_TOPIC_SERIES),
            groups: Bounded::new(MAX_GROUP_SERIES),
            #[cfg(feature = "otlp")]
            spans: None,
        }
    }

    /// Also says what becomes of these spans.
    #[cfg(feature = "otlp")]
    pub(crate) fn with_spans(self, spans: Option<crate::spans::Spans>) -> Self {
        Self { spans, ..self }
    }

    /// The series of a topic, to be looked up once and kept.
    pub fn topic(&self, topic: &str) -> Arc<TopicSeries> {
        self.topics.get(topic.into())
    }

    /// The series of a group, to be looked up once and kept.
    pub fn group(&self, topic: &str, group: &str) -> Arc<GroupSeries> {
        self.groups.get((topic.into(), group.into()))
    }

    /// What was rejected or throttled because of a limit.
    pub fn rate_limited(&self, limit: Limit) -> &Counter {
        &self.rate_limited[limit as usize]
    }

    /// Forgets a topic that was removed, with its groups, and makes room for others.
    pub fn forget_topic(&self, topic: &str) {
        self.topics.forget(|name| &**name == topic);
        self.groups.forget(|(name, _)| &**name == topic);
    }

    /// Forgets a group that was removed, and makes room for others.
    pub fn forget_group(&self, topic: &str, group: &str) {
        self.groups
            .forget(|(of, name)| &**of == topic && &**name == group);
    }

    /// Forgets a group without a name of its own, in whichever topics it was.
    pub fn forget_ephemeral_group(&self, group: &str) {
        self.groups.forget(|(_, name)| &**name == group);
    }

    /// Samples the groups of the bus. Those without a series of their own are added up; of their ages
    /// the highest counts.
    pub fn sample_groups<'a>(
        &self,
        samples: impl IntoIterator<Item = (&'a Arc<str>, &'a Arc<str>, GroupSample)>,
    ) {
        let mut together = GroupSample::default();
        for (topic, group, sample) in samples {
            let series = self.groups.get((topic.clone(), group.clone()));
            if self.groups.is_other(&series) {
                together = together.with(sample)
            } else {
                series.take_over(sample)
            }
        }
        self.groups.other().take_over(together);
    }

    /// Samples an ephemeral group, if it has a series.
    pub fn sample_ephemeral(&self, topic: &str, group: &str, sample: GroupSample) {
        if let Some(series) = self.groups.find(&(topic.into(), group.into())) {
            series.take_over(sample);
        }
    }

    /// Samples the memory for deliveries.
    pub fn sample_delivery_memory(&self, used_bytes: u64, limit_bytes: u64) {
        self.delivery_memory.set(used_bytes);
        self.delivery_memory_limit.set(limit_bytes);
    }

    /// Samples the store.
    pub fn sample_store(&self, sample: StoreSample) {
        self.store_bytes.set(sample.bytes);
        self.store_damage.set(sample.damage);
        self.fsync.raise_to(sample.syncs, sample.sync_micros);
    }

    /// Samples the node's copy, where the store has one.
    pub fn sample_copy(&self, sample: Option<CopySample>) {
        self.replication.set(sample);
    }

    /// Samples how many groups have an owner.
    pub fn sample_running_groups(&self, count: u64) {
        self.running_groups.set(count);
    }

    /// Samples how often a group's record could not be written.
    pub fn sample_group_writes(&self, failures: u64) {
        self.group_write_failures.raise_to(failures);
    }

    /// Everything in the text format of Prometheus, to be sent as [`CONTENT_TYPE`].
    pub fn render(&self) -> String {
        let topics = self.labelled_topics();
        let groups = self.labelled_groups();
        let mut text = Text::new();
        self.render_all(&mut text, &topics, &groups);
        process::render(&mut text);
        text.set_naming(Naming::Prefixed);
        self.render_all(&mut text, &topics, &groups);
        text.head("build_info", "gauge", "The version of the server.");
        let version = Labels::new(&[("version", env!("CARGO_PKG_VERSION"))]);
        text.sample(&version, 1);
        #[cfg(feature = "otlp")]
        self.render_spans(&mut text);
        text.finish()
    }

    /// Only where spans are sent to somebody.
    #[cfg(feature = "otlp")]
    fn render_spans(&self, text: &mut Text) {
        let Some(spans) = &self.spans else {
            return;
        };
        let help = "Spans that the collector took, and those that were lost because it was away.";
        text.head("otlp_spans_total", "counter", help);
        for (result, counter) in [
            ("exported", &spans.counts().exported),
            ("dropped", &spans.counts().dropped),
        ] {
            text.sample(&Labels::new(&[("result", result)]), counter.get());
        }
    }

    fn render_all(
        &self,
        text: &mut Text,
        topics: &[(Labels, Arc<TopicSeries>)],
        groups: &[(Labels, Arc<GroupSeries>)],
    ) {
        text.head("events_published_total", "counter", "Events stored.");
        for (labels, series) in topics {
            text.sample(labels, series.published.get());
        }
        render_groups(text, groups);
        self.render_server(text);
    }

    fn render_server(&self, text: &mut Text) {
        let none = Labels::default();
        text.head("ws_connections", "gauge", "Open WebSocket connections.");
        text.sample(&none, self.connections.get());
        let help = "Publishes refused and deliveries throttled by a rate limit.";
        text.head("rate_limited_total", "counter", help);
        for limit in Limit::ALL {
            let labels = Labels::new(&[("limit", limit.name())]);
            text.sample(&labels, self.rate_limited(limit).get());
        }
        text.head("store_bytes", "gauge", "Bytes that the store holds.");
        text.sample(&none, self.store_bytes.get());
        let help = "Findings of damage in the store.";
        text.head("store_damage", "gauge", help);
        text.sample(&none, self.store_damage.get());
        let help = "Writes of group records that the store refused.";
        text.head("group_write_failures_total", "counter", help);
        text.sample(&none, self.group_write_failures.get());
        let help = "Groups that a task serves now; others are only stored.";
        text.head("running_groups", "gauge", help);
        text.sample(&none, self.running_groups.get());
        let help = "Bytes of events that wait in memory to be delivered, send buffers included.";
        text.head("delivery_memory_bytes", "gauge", help);
        text.sample(&none, self.delivery_memory.get());
        let help = "What limits.delivery_bytes allows of it.";
        text.head("delivery_memory_limit_bytes", "gauge", help);
        text.sample(&none, self.delivery_memory_limit.get());
        let help = "How long the store took to make writes durable.";
        text.head("fsync_duration_ms", "summary", help);
        text.ratio(&self.fsync);
        self.replication.render(text);
    }

    fn labelled_topics(&self) -> Vec<(Labels, Arc<TopicSeries>)> {
        let all = self.topics.all().into_iter();
        let labelled = all.map(|(topic, series)| {
            let topic = topic.as_deref().unwrap_or(OTHER);
            (Labels::new(&[("topic", topic)]), series)
        });
        labelled.collect()
    }

    fn labelled_groups(&self) -> Vec<(Labels, Arc<GroupSeries>)> {
        let all = self.groups.all().into_iter();
        let labelled = all.map(|(names, series)| {
            let (topic, group) = match &names {
                Some((topic, group)) => (&**topic, &**group),
                None => (OTHER, OTHER),
            };
            let labels = Labels::new(&[("topic", topic), ("group", group)]);
            (labels, series)
        });
        labelled.collect()
    }
}

fn render_groups(text: &mut Text, groups: &[(Labels, Arc<GroupSeries>)]) {
    for (name, help, counter) in GROUP_COUNTERS {
        text.head(name, "counter", help);
        for (labels, series) in groups {
            text.sample(labels, counter(series).get());
        }
    }
    for (name, help, gauge) in GROUP_GAUGES {
        text.head(name, "gauge", help);
        for (labels, series) in groups {
            let value = gauge(series).get();
            if name.ends_with("_ms") {
                text.duration_gauge(labels, value)
            } else {
                text.sample(labels, value)
            }
        }
    }
    for (name, help, gauge) in PARTITION_GAUGES {
        text.head(name, "gauge", help);
        for (labels, series) in groups.iter().filter(|(_, one)| one.is_partitioned()) {
            text.sample(labels, gauge(series).get());
        }
    }
    for (name, help, histogram) in GROUP_HISTOGRAMS {
        text.head(name, "histogram", help);
        for (labels, series) in groups {
            text.histogram(labels, histogram(series));
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
