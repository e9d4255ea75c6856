//! Holding the events that a topic retains against a schema before it is registered.

use crate::bus::Bus;
use crate::error::SchemaError;
use prombus_schema::Validator;
use prombus_store::{ReadFrom, ReadLimit, StoredEvent};
use std::sync::Arc;

/// The most events that are named.
const MAX_NAMED: usize = 100;
/// How much is read at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 1_000,
    bytes: 1 << 20,
};

/// How the retained events of a topic fit a schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetainedCheck {
    /// How many events there are.
    pub checked: u64,
    /// How many of them do not fit.
    pub failing: u64,
    /// The first 100 of those.
    pub first_failing: Vec<FailingEvent>,
    /// The groups that have something to do with the topic now.
    pub groups: Vec<LiveGroup>,
}

/// A retained event that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingEvent {
    /// Its id.
    pub id: String,
    /// Its position.
    pub seq: u64,
    /// JSON Pointer to what does not fit.
    pub path: String,
    /// What was expected there.
    pub reason: String,
}

/// A group with members, or with events before it that do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveGroup {
    /// Its name.
    pub group: Arc<str>,
    /// How many members it has now, which would get events of the new version.
    pub members: usize,
    /// How many events that do not fit are behind its cursor, so that it may have yet to settle them.
    pub failing_ahead: u64,
}

impl Bus {
    /// Holds all retained events of a topic against a schema, and names the groups that would be affected.
    pub async fn check_retained(
        &self,
        topic: &str,
        schema: &str,
    ) -> Result<RetainedCheck, SchemaError> {
        let validator = Validator::new(&self.parse_schema(topic, schema)?)?;
        let Some(info) = self.store().topic(topic) else {
            return Ok(RetainedCheck::default());
        };
        let groups = self.groups(topic).await?;
        let cursors: Vec<u64> = groups.iter().map(|group| group.cursor).collect();
        let mut ahead = vec![0; groups.len()];
        let mut check = RetainedCheck::default();
        let mut next_seq = info.first_seq;
        while next_seq <= info.tail_seq {
            let from = ReadFrom::Seq(next_seq);
            let page = self.store().read(&info.name, from, PAGE).await?;
            for event in page
                .events
                .iter()
                .filter(|event| event.seq() <= info.tail_seq)
            {
                if check.add(&validator, event) {
                    continue;
                }
                for (ahead, cursor) in ahead.iter_mut().zip(&cursors) {
                    *ahead += u64::from(event.seq() > *cursor);
                }
            }
            if page.next_seq <= next_seq {
                break;
            }
            next_seq = page.next_seq;
            // Others get their turn between pages.
            tokio::task::yield_now().await;
        }
        for (group, failing_ahead) in groups.into_iter().zip(ahead) {
            let members = group.members.len();
            if members > 0 || failing_ahead > 0 {
                let group = group.group;
                check.groups.push(LiveGroup {
                    group,
                    members,
                    failing_ahead,
                });
            }
        }
        Ok(check)
    }
}

impl RetainedCheck {
    /// Counts an event, and says whether it fits.
    fn add(&mut self, validator: &Validator, event: &StoredEvent) -> bool {
        self.checked += 1;
        if event.is_tombstone() {
            return true;
        }
        let Err(invalid) = validator.check(event.payload()) else {
            return true;
        };
        self.failing += 1;
        if self.first_failing.len() < MAX_NAMED {
            self.first_failing.push(FailingEvent {
                id: event.id().into_owned(),
                seq: event.seq(),
                path: invalid.path,
                reason: invalid.reason,
            });
        }
        false
    }
}
