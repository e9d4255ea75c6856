//! Looking at groups that may be served by another node: the owner or relay in this process is asked first, then the
//! node that owns the group, and where neither answers in time the stored record has to do.

use super::Bus;
use crate::error::{GroupError, UnknownGroup};
use crate::group::command::{Command, Reply};
use crate::group::explain::of_stored;
use crate::group::record::{GroupRecord, record_key};
use crate::group::registry::GroupName;
use crate::group::relay::LINK_TIMEOUT;
use futures_util::future::join_all;
use prombus_interface::{Explanation, GroupInfo};
use std::collections::BTreeMap;
use tokio::time::{Instant, timeout_at};

/// How asking the owner or relay of a group in this process went.
pub(super) enum Asked<T> {
    Answered(Result<T, GroupError>),
    /// Another node owns the group, and may be asked.
    Elsewhere,
    /// No answer by the deadline: the owner, here or behind the relay, is cut off and does not know whether it still owns
    /// the group.
    Silent,
}

impl Bus {
    /// Asks the owner or relay of a group in this process, but does not start one where there are other nodes: looking
    /// at a group must not take it over.
    pub(super) async fn ask_here<T>(
        &self,
        deadline: Instant,
        name: &GroupName,
        command: impl Fn(Reply<T>) -> Command,
    ) -> Asked<T> {
        let call = self.registry.call(name, command);
        let answer = if self.core.nodes.is_none() {
            call.await
        } else if !self.registry.is_running(name) {
            return Asked::Elsewhere;
        } else if let Ok(answer) = timeout_at(deadline, call).await {
            answer
        } else {
            return Asked::Silent;
        };
        match answer {
            Err(GroupError::OwnedElsewhere(_)) => Asked::Elsewhere,
            answer => Asked::Answered(answer),
        }
    }

    /// A group's state, by its owner where that answers by the deadline.
    pub(super) async fn info_by(
        &self,
        deadline: Instant,
        name: &GroupName,
    ) -> Result<GroupInfo, GroupError> {
        let asked = self.ask_here(deadline, name, Command::Describe).await;
        if let Asked::Answered(described) = asked {
            return described;
        }
        let record = self.record_of(name).await?;
        if matches!(asked, Asked::Elsewhere)
            && let Some(node) = self.other_owner(&record)
        {
            let described = self.describe_elsewhere(deadline, node, std::slice::from_ref(name));
            if let Some(Some(info)) = described.await.pop() {
                return Ok(info);
            }
        }
        Ok(self.describe_stored(name, &record))
    }

    /// The node that serves a group, where it is another one.
    pub(super) fn other_owner(&self, record: &GroupRecord) -> Option<u64> {
        let me = self.core.nodes.as_ref()?.me();
        let owner = record.owner.as_ref()?;
        (!owner.released && owner.node != me.node).then_some(owner.node)
    }

    /// Replaces what is stored of groups by what the nodes that serve them know.
    pub(super) async fn ask_other_nodes(
        &self,
        groups: &BTreeMap<u64, Vec<(GroupName, usize)>>,
        infos: &mut [GroupInfo],
    ) {
        let deadline = Instant::now() + LINK_TIMEOUT;
        let asking = groups.iter().map(|(node, asked)| async move {
            let names: Vec<GroupName> = asked.iter().map(|(name, _)| name.clone()).collect();
            (
                asked,
                self.describe_elsewhere(deadline, *node, &names).await,
            )
        });
        for (asked, described) in join_all(asking).await {
            for ((_, at), info) in asked.iter().zip(described) {
                if let Some(info) = info {
                    infos[*at] = info;
                }
            }
        }
    }

    /// Why nothing is flowing to a group that this node could not explain.
    pub(super) async fn explain_elsewhere(
        &self,
        deadline: Instant,
        name: &GroupName,
        may_ask: bool,
    ) -> Result<Explanation, GroupError> {
        let record = self.record_of(name).await?;
        let owner = match (self.other_owner(&record), &self.core.nodes) {
            (Some(node), Some(nodes)) => {
                let url = nodes.url(node).await;
                if may_ask && let Some(url) = &url {
                    let asked = &self.core.asked_nodes;
                    let explained = asked.explain(deadline, (&self.core, nodes), url, name);
                    if let Some(explained) = explained.await {
                        return Ok(explained);
                    }
                }
                Some(url.unwrap_or_else(|| format!("{node:016x}")))
            }
            _ => None,
        };
        let info = self.describe_stored(name, &record);
        Ok(of_stored(info, owner, self.core.monotonic_ms()))
    }

    async fn describe_elsewhere(
        &self,
        deadline: Instant,
        node: u64,
        names: &[GroupName],
    ) -> Vec<Option<GroupInfo>> {
        let Some(nodes) = &self.core.nodes else {
            return Vec::new();
        };
        let Some(url) = nodes.url(node).await else {
            return Vec::new();
        };
        let asked = &self.core.asked_nodes;
        asked
            .describe(deadline, (&self.core, nodes), &url, names)
            .await
    }

    async fn record_of(&self, name: &GroupName) -> Result<GroupRecord, GroupError> {
        let unknown = || UnknownGroup {
            topic: name.topic.clone(),
            group: name.group.clone(),
        };
        let key = record_key(&name.topic, &name.group);
        let stored = self.core.store.get(&key).await?.ok_or_else(unknown)?;
        let record =
            GroupRecord::from_bytes(&stored.value).map_err(|reason| GroupError::Damaged {
                topic: name.topic.clone(),
                group: name.group.clone(),
                reason: reason.into(),
            })?;
        let current = self.core.store.incarnation(&name.topic);
        if record.incarnation.is_some() && record.incarnation != current {
            return Err(unknown().into());
        }
        Ok(record)
    }
}
