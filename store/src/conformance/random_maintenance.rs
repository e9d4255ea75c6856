//! Random publishing into topics that forget, from a seed. What must be kept is kept, what must go is gone, and
//! every way of reading agrees on which is which.

use super::Harness;
use super::Random;
use super::case::Case;
use super::comparing::{KEYS, compare_reads};
use super::oracle::{Oracle, OracleBatch, OracleDraft, OracleEvent, Text, check};
use crate::{Change, Clock, IfExists, TOMBSTONE_MS, TopicOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const ROUNDS: u64 = 30;
const HOUR_MS: u64 = 60 * 60 * 1000;
const RETENTION_MS: u64 = 12 * HOUR_MS;
const MAX_EVENTS: u64 = 25;

/// After each maintenance the topics hold what their options say.
pub async fn what_must_be_kept_is_kept<H: Harness>(harness: &H, seed: u64) {
    let mut run = Run {
        case: Case::new(harness).await,
        oracle: Oracle::default(),
        random: Random::seeded(seed),
        compacted: BTreeSet::new(),
    };
    let topics = OracleBatch {
        changes: topics().into(),
        ..OracleBatch::default()
    };
    run.commit(topics).await.expect("topics are made");
    for round in 0..ROUNDS {
        if let Err(wrong) = run.round().await {
            panic!("seed {seed}, round {round}: {wrong}");
        }
        if run.random.percent(30) {
            run.case = run.case.reopen().await;
        }
    }
}

/// A store and its oracle on their way. The oracle remembers all that was ever published.
struct Run<'a, H> {
    case: Case<'a, H>,
    oracle: Oracle,
    random: Random,
    /// The positions that the compacted topic held when last seen.
    compacted: BTreeSet<u64>,
}

impl<H: Harness> Run<'_, H> {
    async fn round(&mut self) -> Result<(), String> {
        let mut batch = OracleBatch::default();
        for _ in 0..self.random.below(60) {
            batch.events.push(self.random_event());
        }
        self.commit(batch).await?;
        let later_ms = *self
            .random
            .pick(&[0, 1, HOUR_MS, 5 * HOUR_MS, 13 * HOUR_MS]);
        self.case.clock.advance(later_ms);
        self.case.maintain().await;

        let now_ms = self.case.clock.now_ms();
        self.compare("plain", |_| true).await?;
        self.compare("aged", |event| event.ts + RETENTION_MS >= now_ms)
            .await?;
        let tail_seq = self.case.info(&"counted".into()).tail_seq;
        self.compare("counted", |event| event.seq + MAX_EVENTS > tail_seq)
            .await?;
        self.compare_compacted(now_ms).await
    }

    async fn commit(&mut self, batch: OracleBatch) -> Result<(), String> {
        let answer = self.case.store.commit(batch.encode()).await;
        self.oracle.judge(&batch, self.case.clock.now_ms(), answer)
    }

    fn random_event(&mut self) -> OracleDraft {
        let key = self
            .random
            .percent(80)
            .then(|| (*self.random.pick(&KEYS)).into());
        let tombstone = self.random.percent(20);
        let long = format!("\"{}\"", "long".repeat(self.random.below(200) as usize));
        OracleDraft {
            topic: (*self.random.pick(&["plain", "aged", "counted", "compacted"])).into(),
            id: None,
            ts: None,
            key,
            payload: Text(if tombstone { "null".into() } else { long }),
            tombstone,
        }
    }

    /// A topic that holds exactly those of its events that it should.
    async fn compare(
        &mut self,
        name: &str,
        stays: impl Fn(&OracleEvent) -> bool,
    ) -> Result<(), String> {
        let topic: Arc<str> = name.into();
        let published = self.oracle.topics[&topic].kept();
        let kept: Vec<OracleEvent> = published
            .iter()
            .filter(|event| stays(event))
            .cloned()
            .collect();
        let compared = compare_reads(&self.case, &topic, &kept, &mut self.random).await;
        compared.map_err(|wrong| format!("topic {name}: {wrong}"))?;
        let info = self.case.info(&topic);
        let oldest_seq = kept.first().map_or(info.tail_seq + 1, |event| event.seq);
        let starts_right = if name == "compacted" && !kept.is_empty() {
            info.first_seq <= oldest_seq
        } else {
            info.first_seq == oldest_seq
        };
        let fits = starts_right && info.events == kept.len() as u64;
        check(fits, || format!("topic {name} is {info:?}"))
    }

    /// The compacted topic may hold more than it must, but what is gone does not come back.
    async fn compare_compacted(&mut self, now_ms: u64) -> Result<(), String> {
        let topic: Arc<str> = "compacted".into();
        let published = self.oracle.topics[&topic].kept();
        let read = self.case.all(&topic).await;
        let held: BTreeSet<u64> = read.iter().map(|event| event.seq()).collect();
        let missing = required(published, now_ms).find(|seq| !held.contains(seq));
        check(missing.is_none(), || format!("compaction took {missing:?}"))?;
        let known = self.compacted.last().copied().unwrap_or(0);
        let back = held
            .iter()
            .find(|&&seq| seq <= known && !self.compacted.contains(&seq));
        check(back.is_none(), || format!("{back:?} came back"))?;
        self.compare("compacted", |event| held.contains(&event.seq))
            .await?;
        self.compacted = held;
        Ok(())
    }
}

fn topics() -> [Change; 4] {
    let aged = TopicOptions {
        retention_ms: Some(RETENTION_MS),
        ..TopicOptions::default()
    };
    let counted = TopicOptions {
        max_events: Some(MAX_EVENTS),
        ..TopicOptions::default()
    };
    let compacted = TopicOptions {
        compaction: true,
        ..TopicOptions::default()
    };
    [
        ("plain", TopicOptions::default()),
        ("aged", aged),
        ("counted", counted),
        ("compacted", compacted),
    ]
    .map(|(name, options)| Change::PutTopic {
        topic: name.into(),
        options,
        if_exists: IfExists::Replace,
    })
}

/// The positions that compaction has to keep: events without a key, and the latest of each key unless it is a
/// tombstone that was there long enough.
fn required(published: &[OracleEvent], now_ms: u64) -> impl Iterator<Item = u64> {
    let keyed = published
        .iter()
        .filter_map(|event| Some((event.key.as_deref()?, event.seq)));
    let latest: BTreeMap<&str, u64> = keyed.collect();
    published.iter().filter_map(move |event| {
        let expired = event.tombstone && event.ts + TOMBSTONE_MS < now_ms;
        let required = match &event.key {
            Some(key) => latest[key.as_str()] == event.seq && !expired,
            None => true,
        };
        required.then_some(event.seq)
    })
}
