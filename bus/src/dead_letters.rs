//! Dead letters as a whole: which of them were sent to their topic again, and which were removed.
//!
//! Events of a topic cannot be changed, so both are marks beside them: one keyed record for each `dlq.` topic, with
//! ranges of positions. Removed letters at the front are trimmed off the topic, and their marks with them.

use crate::bus::Bus;
use crate::error::{AdminError, InvalidField};
use crate::group::ranges::Ranges;
use prombus_interface::names::stable_hash;
use prombus_store::{Batch, Change, CommitError, Expect, Keyed, StoredEvent};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most ranges of positions that the marks of a topic have. Beyond it the oldest letters have to be removed first.
const MAX_RANGES: usize = 16_384;
/// How often marks are written anew because others wrote them at the same time.
const MAX_TRIES: usize = 16;
const KEY_PREFIX: &str = "dlq-marks/";
/// Ids that begin with this are of events that were dead letters.
const REDRIVE_PREFIX: &str = "redrive:";
/// The longest id of a letter that is kept readable in the id of its event.
const MAX_LETTER_ID_BYTES: usize = 36;

/// What became of the letters of a `dlq.` topic, by their positions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeadLetterMarks {
    #[serde(default)]
    redriven: Vec<(u64, u64)>,
    #[serde(default)]
    removed: Vec<(u64, u64)>,
}

impl DeadLetterMarks {
    /// Whether the letter was sent to its topic again.
    pub fn is_redriven(&self, seq: u64) -> bool {
        contains(&self.redriven, seq)
    }

    /// Whether the letter was removed.
    pub fn is_removed(&self, seq: u64) -> bool {
        contains(&self.removed, seq)
    }
}

impl Bus {
    /// What became of the letters of a `dlq.` topic.
    pub async fn dead_letter_marks(&self, letters: &str) -> Result<DeadLetterMarks, AdminError> {
        let stored = self.core().store.get(&marks_key(letters)).await?;
        Ok(parse(stored.as_ref()))
    }

    /// Notes that letters were sent to their topic again.
    pub async fn mark_redriven(&self, letters: &str, seqs: &[u64]) -> Result<(), AdminError> {
        self.change_marks(letters, |marks| {
            marks.redriven = with(&marks.redriven, seqs);
            // What is forgotten here is only that a letter was sent.
            let surplus = marks.redriven.len().saturating_sub(MAX_RANGES);
            marks.redriven.drain(..surplus);
        })
        .await
    }

    /// Removes letters.
    pub async fn remove_dead_letters(&self, letters: &str, seqs: &[u64]) -> Result<(), AdminError> {
        self.change_marks(letters, |marks| marks.removed = with(&marks.removed, seqs))
            .await
    }

    async fn change_marks(
        &self,
        letters: &str,
        change: impl Fn(&mut DeadLetterMarks),
    ) -> Result<(), AdminError> {
        let key = marks_key(letters);
        let store = &self.core().store;
        for _ in 0..MAX_TRIES {
            let info = self.topic(letters)?;
            let stored = store.get(&key).await?;
            let mut marks = parse(stored.as_ref());
            change(&mut marks);
            let mut batch = Batch::atomic();
            let first_seq = first_kept(&marks.removed, info.first_seq).min(info.tail_seq + 1);
            if first_seq > info.first_seq {
                let topic = info.name.clone();
                batch.change(Change::Trim { topic, first_seq });
            }
            for ranges in [&mut marks.redriven, &mut marks.removed] {
                ranges.retain(|&(_, last)| last >= first_seq);
            }
            if marks.removed.len() > MAX_RANGES {
                let reason =
                    "too many separate dead letters are removed already; remove the oldest first";
                return Err(InvalidField::new("ids", reason).into());
            }
            batch.change(Change::Put {
                key: key.clone(),
                // Numbers and lists are always written.
                value: serde_json::to_vec(&marks).unwrap_or_default().into(),
                expect: stored.map_or(Expect::Absent, |keyed| Expect::Version(keyed.version)),
            });
            match store.commit(batch).await {
                Err(CommitError::VersionMismatch(_)) => {}
                outcome => return Ok(outcome.map(drop)?),
            }
        }
        let reason = "its dead letters are being changed concurrently; try again";
        Err(InvalidField::new("topic", reason).into())
    }
}

/// The key of the marks of a `dlq.` topic.
pub(crate) fn marks_key(letters: &str) -> Arc<str> {
    format!("{KEY_PREFIX}{letters}").into()
}

/// The id under which a dead letter is published again. It is the same each time, so that a letter is published once;
/// another `nonce` makes another id. With a group, only that group is given the event.
pub fn redrive_id(letter_id: &str, nonce: Option<u64>, group: Option<&str>) -> String {
    let letter = match nonce {
        None if letter_id.len() <= MAX_LETTER_ID_BYTES => letter_id.to_owned(),
        _ => {
            let nonce = nonce.unwrap_or_default();
            format!("{:016x}", stable_hash(&format!("{letter_id}:{nonce}")))
        }
    };
    match group {
        Some(group) => format!("{REDRIVE_PREFIX}{letter}:{:016x}", stable_hash(group)),
        None => format!("{REDRIVE_PREFIX}{letter}"),
    }
}

/// Whether an event was a dead letter of another group and was published again for that group alone.
pub(crate) fn is_for_another_group(event: &StoredEvent, group: &str) -> bool {
    if !event.has_client_id() {
        return false;
    }
    let id = event.id();
    let target = id
        .strip_prefix(REDRIVE_PREFIX)
        .and_then(|rest| rest.rsplit_once(':'));
    target.is_some_and(|(_, target)| {
        target.len() == 16
            && u64::from_str_radix(target, 16).is_ok_and(|target| target != stable_hash(group))
    })
}

/// Marks that cannot be read count as none: the letters themselves are all there.
fn parse(stored: Option<&Keyed>) -> DeadLetterMarks {
    let marks = stored.map(|keyed| serde_json::from_slice(&keyed.value));
    marks.and_then(Result::ok).unwrap_or_default()
}

fn contains(ranges: &[(u64, u64)], seq: u64) -> bool {
    let after = ranges.partition_point(|&(first, _)| first <= seq);
    after > 0 && ranges[after - 1].1 >= seq
}

/// The ranges with more positions in them.
fn with(ranges: &[(u64, u64)], seqs: &[u64]) -> Vec<(u64, u64)> {
    let more = seqs.iter().map(|&seq| (seq, seq));
    Ranges::new(ranges.iter().copied().chain(more).collect())
        .iter()
        .collect()
}

/// The first position from `first_seq` on that was not removed.
fn first_kept(removed: &[(u64, u64)], first_seq: u64) -> u64 {
    removed.iter().fold(first_seq, |kept, &(first, last)| {
        if first <= kept {
            kept.max(last + 1)
        } else {
            kept
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_of_redriven_events_fit_and_differ() {
        let letter = "019a8c5e-7b1a-7f00-8000-000000104711";
        let (group, long) = ("g".repeat(128), "x".repeat(64));
        let ids = [
            redrive_id(letter, None, None),
            redrive_id(letter, None, Some(&group)),
            redrive_id(letter, None, Some("other")),
            redrive_id(letter, Some(1), Some(&group)),
            redrive_id(letter, Some(2), Some(&group)),
            redrive_id(&long, None, Some(&group)),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(id.len() <= 64, "{id}");
            assert!(!ids[..at].contains(id), "{id}");
        }
    }

    proptest! {
        #[test]
        fn marks_are_kept_and_only_a_removed_front_is_trimmed(
            seqs in proptest::collection::vec(1..60u64, 0..60),
            first_seq in 1..20u64,
        ) {
            let (early, late) = seqs.split_at(seqs.len() / 2);
            let ranges = with(&with(&[], early), late);
            for seq in 1..60 {
                prop_assert_eq!(contains(&ranges, seq), seqs.contains(&seq));
            }
            let kept = first_kept(&ranges, first_seq);
            prop_assert!((first_seq..kept).all(|seq| seqs.contains(&seq)));
            prop_assert!(!seqs.contains(&kept));
        }
    }
}
