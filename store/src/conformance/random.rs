//! Random operations from a seed, against an oracle of vectors and maps. A failure names its seed.

use super::Harness;
use super::Random;
use super::case::{Case, START_MS};
use super::comparing::{KEYS, compare_reads};
use super::oracle::{Oracle, OracleBatch, OracleDraft, OracleTopic, Text, check};
use crate::{Change, Clock, Durability, EventOutcome, Expect, Id, IfExists, TopicOptions};
use std::sync::Arc;

const STEPS: u64 = 120;
const TOPICS: [&str; 4] = ["a", "a.b", "b", "c"];
/// So few that they meet often.
const OWN_IDS: u64 = 60;
const PAYLOADS: [&str; 4] = ["1", "2", "null", r#"{"a":[1E400,"\u00fc"]}"#];

/// Commits, topics, records and restarts at random: every answer and everything read is what the oracle says.
pub async fn operations_match_the_oracle<H: Harness>(harness: &H, seed: u64) {
    let mut run = Run {
        case: Case::new(harness).await,
        oracle: Oracle::default(),
        random: Random::seeded(seed),
        made_ids: Vec::new(),
    };
    for step in 0..STEPS {
        run = match run.step(step).await {
            Ok(run) => run,
            Err(wrong) => panic!("seed {seed}, step {step}: {wrong}"),
        };
    }
}

/// A store and its oracle on their way.
struct Run<'a, H> {
    case: Case<'a, H>,
    oracle: Oracle,
    random: Random,
    /// Ids that the store made, to hand some of them back.
    made_ids: Vec<Id>,
}

impl<H: Harness> Run<'_, H> {
    async fn step(mut self, step: u64) -> Result<Self, String> {
        match self.random.below(100) {
            0..80 => self.commit().await?,
            80..88 => self.move_clock(),
            88..92 => self.case.maintain().await,
            _ => self.case = self.case.reopen().await,
        }
        self.compare_topics()?;
        self.compare_records().await?;
        let names: Vec<Arc<str>> = self.oracle.topics.keys().cloned().collect();
        for name in names {
            if step % 10 == 9 || self.random.percent(30) {
                let compared = self.compare_topic(&name).await;
                compared.map_err(|wrong| format!("topic {name}: {wrong}"))?;
            }
        }
        Ok(self)
    }

    async fn commit(&mut self) -> Result<(), String> {
        let batch = self.random_batch();
        let answer = self.case.store.commit(batch.encode()).await;
        let now_ms = self.case.clock.now_ms();
        let judged = self.oracle.judge(&batch, now_ms, answer.clone());
        judged.map_err(|wrong| format!("{wrong}\n{batch:?}\n{answer:?}"))?;
        for (draft, outcome) in batch
            .events
            .iter()
            .zip(answer.iter().flat_map(|one| &one.events))
        {
            if let (None, EventOutcome::Stored(placed)) = (draft.id, outcome) {
                self.made_ids.push(placed.id);
            }
        }
        Ok(())
    }

    fn move_clock(&mut self) {
        let now_ms = self.case.clock.now_ms();
        self.case.clock.set(match self.random.below(4) {
            0 => now_ms.saturating_sub(self.random.below(2000)),
            1 => START_MS + self.random.below(10),
            _ => now_ms + self.random.below(1000),
        });
    }

    fn random_batch(&mut self) -> OracleBatch {
        let mut batch = OracleBatch {
            atomic: self.random.percent(40),
            ..OracleBatch::default()
        };
        if self.random.percent(45) {
            for _ in 0..=self.random.below(3) {
                batch.changes.push(self.random_change());
            }
        }
        if self.random.percent(80) {
            let most = *self.random.pick(&[1, 5, 40]);
            for _ in 0..=self.random.below(most) {
                batch.events.push(self.random_event());
            }
        }
        batch
    }

    fn random_change(&mut self) -> Change {
        let topic: Arc<str> = (*self.random.pick(&TOPICS)).into();
        let key: Arc<str> = (*self.random.pick(&KEYS)).into();
        let version = self.oracle.records.get(&key).map(|record| record.0);
        let expect = match self.random.below(8) {
            0 => Expect::Absent,
            1 => Expect::Version(u64::MAX / 2),
            2..4 => Expect::Any,
            _ => version.map_or(Expect::Absent, Expect::Version),
        };
        match self.random.below(20) {
            0 => Change::DeleteTopic { topic },
            1..7 => Change::PutTopic {
                topic,
                options: self.random_options(),
                if_exists: *self.random.pick(&[IfExists::Keep, IfExists::Replace]),
            },
            7..10 => {
                let tail_seq = self
                    .oracle
                    .topics
                    .get(&topic)
                    .map_or(1, OracleTopic::tail_seq);
                let first_seq = self.random.below(tail_seq + 3);
                Change::Trim { topic, first_seq }
            }
            10..13 => Change::Delete { key, expect },
            _ => Change::Put {
                key,
                value: vec![self.random.below(256) as u8; self.random.below(20) as usize].into(),
                expect,
            },
        }
    }

    /// Options that forget nothing: what they would forget, and when, is a store's own affair.
    fn random_options(&mut self) -> TopicOptions {
        TopicOptions {
            durability: *self.random.pick(&[Durability::Os, Durability::Fsync]),
            attributes: (*self.random.pick(&["", "{}"])).into(),
            ..TopicOptions::default()
        }
    }

    fn random_event(&mut self) -> OracleDraft {
        let id = match self.random.below(10) {
            0..3 => Id::from_client(&format!("id-{}", self.random.below(OWN_IDS))),
            3 if !self.made_ids.is_empty() => Some(*self.random.pick(&self.made_ids)),
            _ => None,
        };
        let ts = self
            .random
            .percent(25)
            .then(|| START_MS - 50 + self.random.below(100));
        let key = self
            .random
            .percent(50)
            .then(|| (*self.random.pick(&KEYS)).into());
        let mut payload = (*self.random.pick(&PAYLOADS)).to_owned();
        if self.random.percent(5) {
            payload = format!("\"{}\"", "long".repeat(self.random.below(5000) as usize));
        }
        OracleDraft {
            topic: (*self.random.pick(&TOPICS)).into(),
            id,
            ts,
            tombstone: payload == "null",
            key,
            payload: Text(payload),
        }
    }

    fn compare_topics(&self) -> Result<(), String> {
        let found: Vec<_> = self.case.store.topics();
        let expected = self.oracle.topics.iter();
        let same = found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, (name, topic))| {
                found.name == *name
                    && found.options == topic.options
                    && found.first_seq == topic.first_seq
                    && found.tail_seq == topic.tail_seq()
                    && found.events == topic.kept().len() as u64
            });
        check(same, || format!("topics are {found:?}"))
    }

    async fn compare_records(&mut self) -> Result<(), String> {
        let prefix = *self.random.pick(&["", "k", "k/", "x"]);
        let found = self
            .case
            .store
            .list(prefix)
            .await
            .map_err(|error| error.to_string())?;
        let records = self.oracle.records.iter();
        let expected = records.filter(|(key, _)| key.starts_with(prefix));
        let same = found
            .iter()
            .map(|(key, record)| (key, record.version, &record.value))
            .eq(expected.map(|(key, (version, value))| (key, *version, value)));
        check(same, || format!("records at {prefix:?} are {found:?}"))
    }

    async fn compare_topic(&mut self, name: &Arc<str>) -> Result<(), String> {
        let topic = &self.oracle.topics[name];
        compare_reads(&self.case, name, topic.kept(), &mut self.random).await?;
        let mut ids = vec![format!("id-{}", self.random.below(OWN_IDS))];
        if !self.made_ids.is_empty() {
            ids.push(self.random.pick(&self.made_ids).to_string());
        }
        for id in ids {
            let found = self.case.find_id(name, &id).await;
            let expected = topic.with_id(&id).map(|event| event.seq);
            check(found == expected, || {
                format!("{id} is at {found:?}, not {expected:?}")
            })?;
        }
        Ok(())
    }
}
