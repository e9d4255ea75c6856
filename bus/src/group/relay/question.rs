//! Asking another node about the groups that it serves, for a node that has no members of them: over a link of its own, one
//! question after the other. Looking at a group neither starts an owner nor relays it.

use super::wire::{WireReply, decode, encode};
use super::{LINK_TIMEOUT, LinkReceiver, LinkSender};
use crate::core::Core;
use crate::group::command::Command;
use crate::group::ownership::Nodes;
use crate::group::registry::{GroupName, Registry};
use prombus_interface::{Explanation, GroupInfo};
use prombus_store::LockExt;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How many groups one question is about at most.
const MAX_GROUPS_ASKED: usize = 256;
/// How many links to one node are kept for the next questions.
const MAX_IDLE_LINKS: usize = 2;
/// How long the node that is asked keeps a link without a question.
const IDLE_LINK: Duration = Duration::from_secs(10);
/// How long a node that did not answer is not asked again.
const UNREACHABLE_FOR_MS: u64 = 2_000;

/// The first message of such a link, and each one after an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum Question {
    DescribeGroups { groups: Vec<(Arc<str>, Arc<str>)> },
    ExplainGroup { topic: Arc<str>, group: Arc<str> },
}

/// For each group what is known of it; nothing where the node does not serve it.
#[derive(Debug, Serialize, Deserialize)]
struct Answers(Vec<Option<WireReply>>);

/// The other nodes that were asked, by their URLs.
#[derive(Default)]
pub(crate) struct AskedNodes(Mutex<HashMap<String, AskedNode>>);

#[derive(Default)]
struct AskedNode {
    /// Links on which no answer is awaited.
    idle: Vec<(LinkSender, LinkReceiver)>,
    /// Not asked before this monotonic time.
    unreachable_until_ms: u64,
}

impl AskedNodes {
    /// What the node at a URL knows of groups that it serves, in their order; `None` for each one it has not described by
    /// the deadline.
    pub(crate) async fn describe(
        &self,
        deadline: Instant,
        (core, nodes): (&Core, &Nodes),
        url: &str,
        groups: &[GroupName],
    ) -> Vec<Option<GroupInfo>> {
        let mut infos = Vec::with_capacity(groups.len());
        for asked in groups.chunks(MAX_GROUPS_ASKED) {
            let names = asked.iter();
            let names = names.map(|name| (name.topic.clone(), name.group.clone()));
            let question = Question::DescribeGroups {
                groups: names.collect(),
            };
            let answers = self.ask(deadline, (core, nodes), url, &question).await;
            let mut answers = answers.unwrap_or_default().into_iter();
            infos.extend(asked.iter().map(|_| match answers.next() {
                Some(Some(WireReply::Info(info))) => Some(*info),
                _ => None,
            }));
        }
        infos
    }

    /// Why nothing is flowing to a group, by the node at a URL that serves it.
    pub(crate) async fn explain(
        &self,
        deadline: Instant,
        (core, nodes): (&Core, &Nodes),
        url: &str,
        name: &GroupName,
    ) -> Option<Explanation> {
        let question = Question::ExplainGroup {
            topic: name.topic.clone(),
            group: name.group.clone(),
        };
        let answers = self.ask(deadline, (core, nodes), url, &question).await?;
        match answers.into_iter().next() {
            Some(Some(WireReply::Explanation(explanation))) => Some(*explanation),
            _ => None,
        }
    }

    async fn ask(
        &self,
        deadline: Instant,
        (core, nodes): (&Core, &Nodes),
        url: &str,
        question: &Question,
    ) -> Option<Vec<Option<WireReply>>> {
        if self.is_unreachable(url, core.monotonic_ms()) {
            return None;
        }
        let question = encode(question, &[]);
        let asking = async {
            // A link that was kept may have broken since, which says nothing about the node.
            while let Some(link) = self.idle_link(url) {
                if let Some(answers) = self.ask_over(link, url, question.clone()).await {
                    return Some(answers);
                }
            }
            let link = nodes.dial(url).await?.split();
            self.ask_over(link, url, question).await
        };
        let answers = timeout_at(deadline, asking).await.ok().flatten();
        if answers.is_none() {
            let now_ms = core.monotonic_ms();
            let asked = AskedNode {
                idle: Vec::new(),
                unreachable_until_ms: now_ms.saturating_add(UNREACHABLE_FOR_MS),
            };
            let mut all = self.lock();
            // Entries of nodes that were replaced go.
            all.retain(|_, node| !node.idle.is_empty() || now_ms < node.unreachable_until_ms);
            all.insert(url.to_owned(), asked);
        }
        answers
    }

    fn is_unreachable(&self, url: &str, now_ms: u64) -> bool {
        let all = self.lock();
        all.get(url)
            .is_some_and(|node| now_ms < node.unreachable_until_ms)
    }

    /// A link that was kept, if there is one.
    fn idle_link(&self, url: &str) -> Option<(LinkSender, LinkReceiver)> {
        let mut all = self.lock();
        let idle = &mut all.get_mut(url)?.idle;
        idle.retain(|(sender, _)| !sender.is_over());
        idle.pop()
    }

    async fn ask_over(
        &self,
        (sender, mut receiver): (LinkSender, LinkReceiver),
        url: &str,
        question: Vec<u8>,
    ) -> Option<Vec<Option<WireReply>>> {
        if !sender.send(question).await {
            return None;
        }
        let answer = receiver.recv().await?;
        let (Answers(answers), _) = decode(&answer)?;
        let mut all = self.lock();
        let idle = &mut all.entry(url.to_owned()).or_default().idle;
        if idle.len() < MAX_IDLE_LINKS {
            idle.push((sender, receiver));
        }
        Some(answers)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, AskedNode>> {
        self.0.guard()
    }
}

/// Answers the questions on a link, of which the first one has come.
pub(super) async fn answer_all(
    core: &Core,
    registry: &Registry,
    first: Vec<u8>,
    (sender, mut receiver): (LinkSender, LinkReceiver),
) {
    let mut closing = core.closing();
    let mut message = first;
    while let Some((question, _)) = decode::<Question>(&message) {
        // The node that asked waits no longer either.
        let answering = timeout(LINK_TIMEOUT, answer(registry, question));
        let Ok(answers) = answering.await else {
            return;
        };
        if !sender.send(encode(&answers, &[])).await {
            return;
        }
        let next = tokio::select! {
            next = timeout(IDLE_LINK, receiver.recv()) => next,
            () = closing.closed() => return,
        };
        let Ok(Some(next)) = next else {
            return;
        };
        message = next;
    }
}

async fn answer(registry: &Registry, question: Question) -> Answers {
    let (groups, is_explained) = match question {
        Question::DescribeGroups { groups } => (groups, false),
        Question::ExplainGroup { topic, group } => (vec![(topic, group)], true),
    };
    let mut answers = Vec::with_capacity(groups.len());
    for (topic, group) in groups {
        let name = GroupName {
            topic,
            group,
            ephemeral: false,
        };
        answers.push(if !registry.is_running(&name) {
            None
        } else if is_explained {
            let explained = registry.call(&name, Command::Explain).await.ok();
            explained.map(|explained| WireReply::Explanation(Box::new(explained)))
        } else {
            let described = registry.call(&name, Command::Describe).await.ok();
            described.map(|info| WireReply::Info(Box::new(info)))
        });
    }
    Answers(answers)
}
