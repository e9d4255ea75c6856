//! Looking at groups and moving their cursors.

use super::Bus;
use super::groups_elsewhere::Asked;
use crate::error::{GroupError, StoreFailed, UnknownGroup, UnknownTopic};
use crate::group::command::{Command, Seek};
use crate::group::record::{GroupRecord, record_prefix};
use crate::group::registry::GroupName;
use crate::group::relay::LINK_TIMEOUT;
use crate::group::status::GroupStatus;
use crate::group::{Ended, GroupConfig};
use crate::subscription::pattern_group::pattern_key;
use prombus_interface::names::{check_group, check_topic};
use prombus_interface::{Cursor, Explanation, GroupInfo, Lag, Pattern, SeekEffect, StartAt};
use prombus_store::{Batch, Change, Expect, Keyed, ReadFrom, ReadLimit, StoredEvent};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

impl Bus {
    /// The groups of a topic, in the order of their names.
    pub async fn groups(&self, topic: &str) -> Result<Vec<GroupInfo>, GroupError> {
        check_topic(topic)?;
        self.known_topic(topic)?;
        let prefix = record_prefix(topic);
        let stored = self.core.store.list(&prefix).await?;
        let mut groups: BTreeMap<(Arc<str>, bool), Option<Keyed>> = stored
            .into_iter()
            .filter_map(|(key, keyed)| {
                let group = key.strip_prefix(&prefix)?.into();
                Some(((group, false), Some(keyed)))
            })
            .collect();
        for name in self.registry.running_in(topic) {
            groups.insert((name.group, name.ephemeral), None);
        }
        let mut infos = Vec::with_capacity(groups.len());
        // Groups that other nodes serve, by node, and the places of their infos in the list.
        let mut elsewhere: BTreeMap<u64, Vec<(GroupName, usize)>> = BTreeMap::new();
        let deadline = Instant::now() + LINK_TIMEOUT;
        for ((group, ephemeral), stored) in groups {
            let name = GroupName {
                topic: topic.into(),
                group,
                ephemeral,
            };
            // A group without an owner is described by its record, so that looking at it starts none.
            let record = stored.and_then(|keyed| GroupRecord::from_bytes(&keyed.value).ok());
            if let Some(record) = record {
                if let Some(node) = self.other_owner(&record) {
                    let of_node = elsewhere.entry(node).or_default();
                    of_node.push((name.clone(), infos.len()));
                }
                infos.push(self.describe_stored(&name, &record));
                continue;
            }
            match self.info_by(deadline, &name).await {
                Ok(info) => infos.push(info),
                // It was removed while the others were asked.
                Err(GroupError::UnknownGroup(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.ask_other_nodes(&elsewhere, &mut infos).await;
        Ok(infos)
    }

    pub(super) fn describe_stored(&self, name: &GroupName, record: &GroupRecord) -> GroupInfo {
        let info = self.core.store.topic(&name.topic);
        let (first, tail) = info.map_or((1, 0), |info| (info.first_seq, info.tail_seq));
        let counts = self.registry.counts(name);
        GroupInfo {
            topic: name.topic.clone(),
            group: name.group.clone(),
            created_ms: record.created_ms,
            cursor: record.cursor,
            tail,
            lag: GroupStatus::of_record(record, counts).lag(first, tail),
            skipped: record.skipped,
            ack_timeout_ms: record.settings.ack_timeout_ms,
            max_attempts: record.settings.max_attempts,
            ordering: record.settings.ordering,
            filter: record.settings.filter.clone(),
            paused: record.paused_since_ms.is_some(),
            paused_since_ms: record.paused_since_ms,
            partitions: self
                .core
                .topics
                .partitions(&name.topic)
                .filter(|_| record.settings.partitioned),
            members: Vec::new(),
            in_flight: 0,
            waiting: 0,
            oldest_in_flight_ms: 0,
            counts,
        }
    }

    /// How many groups have an owner now: those with members that are not idle followers of a pattern.
    pub fn running_groups(&self) -> usize {
        self.registry.running()
    }

    /// The current state of a group.
    pub async fn group(&self, topic: &str, group: &str) -> Result<GroupInfo, GroupError> {
        let name = self.name(topic, group)?;
        self.info_by(Instant::now() + LINK_TIMEOUT, &name).await
    }

    /// Why nothing is flowing to a group.
    pub async fn explain(&self, topic: &str, group: &str) -> Result<Explanation, GroupError> {
        let name = self.name(topic, group)?;
        let deadline = Instant::now() + LINK_TIMEOUT;
        match self.ask_here(deadline, &name, Command::Explain).await {
            Asked::Answered(explained) => explained,
            Asked::Elsewhere => self.explain_elsewhere(deadline, &name, true).await,
            Asked::Silent => self.explain_elsewhere(deadline, &name, false).await,
        }
    }

    /// The last settled position of a group.
    pub async fn cursor(&self, topic: &str, group: &str) -> Result<Cursor, GroupError> {
        let info = self.group(topic, group).await?;
        self.cursor_of(&info).await
    }

    /// How far behind a group is.
    pub async fn lag(&self, topic: &str, group: &str) -> Result<Lag, GroupError> {
        let info = self.group(topic, group).await?;
        let oldest = match info.lag {
            0 => None,
            _ => self.first_event(&info.topic, info.cursor + 1).await?,
        };
        let age_ms = |event: StoredEvent| self.core.now_ms().saturating_sub(event.ts());
        Ok(Lag {
            topic: info.topic.clone(),
            group: info.group.clone(),
            lag: info.lag,
            lag_ms: oldest.map_or(0, age_ms),
            last_cursor: self.cursor_of(&info).await?,
            tail: info.tail,
        })
    }

    /// Sets a group's cursor: everything before the place is settled, everything from it on is delivered, again too.
    /// Leases given so far are void.
    pub async fn seek(
        &self,
        topic: &str,
        group: &str,
        place: StartAt,
    ) -> Result<SeekEffect, GroupError> {
        self.seek_or_not(topic, group, place, false).await
    }

    /// What [`Bus::seek`] would do.
    pub async fn seek_dry_run(
        &self,
        topic: &str,
        group: &str,
        place: StartAt,
    ) -> Result<SeekEffect, GroupError> {
        self.seek_or_not(topic, group, place, true).await
    }

    /// Undoes the last seek of a group, once: it goes on from where it was before, except that what was settled since stays
    /// settled. Refused where there is nothing to undo, or where the group has settled more than
    /// [`BusOptions::max_undo_settled`](crate::BusOptions::max_undo_settled) positions since. Leases given so far are void.
    pub async fn undo_seek(&self, topic: &str, group: &str) -> Result<SeekEffect, GroupError> {
        let name = self.name(topic, group)?;
        self.registry.call(&name, Command::UndoSeek).await
    }

    /// Pauses a group: none of its members is given events until [`Bus::resume_group`], also after a restart. Leases that
    /// members hold go on.
    pub async fn pause_group(&self, topic: &str, group: &str) -> Result<GroupInfo, GroupError> {
        let name = self.name(topic, group)?;
        let pause = |reply| Command::SetPaused(true, reply);
        self.registry.call(&name, pause).await
    }

    /// Lets a paused group go on.
    pub async fn resume_group(&self, topic: &str, group: &str) -> Result<GroupInfo, GroupError> {
        let name = self.name(topic, group)?;
        let resume = |reply| Command::SetPaused(false, reply);
        self.registry.call(&name, resume).await
    }

    /// Changes what belongs to a group: what its members leave out, and may not ask for otherwise.
    pub async fn configure_group(
        &self,
        topic: &str,
        group: &str,
        config: &GroupConfig,
    ) -> Result<(), GroupError> {
        let name = self.name(topic, group)?;
        let request = config.request()?;
        let configure = |reply| Command::Configure(request.clone(), reply);
        self.registry.call(&name, configure).await
    }

    /// Removes a group. Its subscriptions end. One of a pattern that follows the topic goes on, and begins in it anew; named
    /// by its pattern it is removed from all topics.
    pub async fn remove_group(&self, topic: &str, group: &str) -> Result<(), GroupError> {
        if Pattern::is_pattern(topic)
            && let Ok(pattern) = Pattern::for_topics(topic)
        {
            return self.remove_pattern_group(&pattern, group).await;
        }
        let name = self.name(topic, group)?;
        let remove = |reply| Command::Remove(Ended::GroupRemoved, reply);
        self.registry.call(&name, remove).await
    }

    async fn remove_pattern_group(&self, pattern: &Pattern, group: &str) -> Result<(), GroupError> {
        check_group(group)?;
        let key = pattern_key(pattern, group);
        let Some(stored) = self.core.store.get(&key).await? else {
            return Err(UnknownGroup {
                topic: pattern.to_string().into(),
                group: group.into(),
            }
            .into());
        };
        let mut batch = Batch::new();
        let expect = Expect::Version(stored.version);
        batch.change(Change::Delete { key, expect });
        if let Err(error) = self.core.store.commit(batch).await {
            let cause = error.to_string().into();
            return Err(StoreFailed { cause }.into());
        }
        self.registry.end_followers_of(pattern, group);
        let topics = self.topics().into_iter();
        for info in topics.filter(|info| pattern.matches(&info.name)) {
            let name = self.name(&info.name, group)?;
            let remove = |reply| Command::Remove(Ended::GroupRemoved, reply);
            match self.registry.call(&name, remove).await {
                Ok(()) | Err(GroupError::UnknownGroup(_) | GroupError::UnknownTopic(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn seek_or_not(
        &self,
        topic: &str,
        group: &str,
        place: StartAt,
        dry_run: bool,
    ) -> Result<SeekEffect, GroupError> {
        place.check()?;
        let name = self.name(topic, group)?;
        let seek = |reply| {
            let place = place.clone();
            Command::Seek(Seek { place, dry_run }, reply)
        };
        self.registry.call(&name, seek).await
    }

    fn name(&self, topic: &str, group: &str) -> Result<GroupName, GroupError> {
        check_topic(topic)?;
        check_group(group)?;
        let topic = self.known_topic(topic)?;
        let group: Arc<str> = group.into();
        let mut name = GroupName {
            topic,
            group,
            ephemeral: true,
        };
        name.ephemeral = self.registry.is_running(&name);
        Ok(name)
    }

    /// A topic that exists, or that someone has subscribed to before it does.
    fn known_topic(&self, topic: &str) -> Result<Arc<str>, GroupError> {
        let topic: Arc<str> = topic.into();
        if self.core.topics.may_exist(&topic) {
            Ok(topic)
        } else {
            Err(UnknownTopic { topic }.into())
        }
    }

    async fn cursor_of(&self, info: &GroupInfo) -> Result<Cursor, GroupError> {
        let event = match info.cursor {
            0 => None,
            seq => self.first_event(&info.topic, seq).await?,
        };
        let event = event.filter(|event| event.seq() == info.cursor);
        Ok(Cursor {
            topic: info.topic.clone(),
            group: info.group.clone(),
            last_id: event.as_ref().map(|event| event.id().into_owned()),
            last_ts: event.as_ref().map(StoredEvent::ts),
            last_seq: info.cursor,
        })
    }

    /// The first event at or after a position.
    pub(super) async fn first_event(
        &self,
        topic: &Arc<str>,
        seq: u64,
    ) -> Result<Option<StoredEvent>, GroupError> {
        if self.core.store.topic(topic).is_none() {
            return Ok(None);
        }
        let limit = ReadLimit {
            events: 1,
            bytes: 1,
        };
        let page = self
            .core
            .store
            .read(topic, ReadFrom::Seq(seq), limit)
            .await?;
        Ok(page.events.into_iter().next())
    }
}
