//! What a shell completes beyond commands and flags: names of contexts, topics and groups, asked from the server that
//! the command line names. A server that does not reply at once completes nothing.

use crate::contexts::Contexts;
use crate::remote::{Remote, RemoteArgs};
use crate::server_url;
use clap_complete::CompletionCandidate;
use prombus_api::http::{GroupList, GroupQuery, TopicList};
use std::time::Duration;

/// Nobody waits longer for a completion.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Names that a shell is given at most.
const MAX_CANDIDATES: usize = 500;

/// The user's contexts.
pub(crate) fn contexts() -> Vec<CompletionCandidate> {
    let contexts = Contexts::load().unwrap_or_default();
    candidates(contexts.contexts.into_keys())
}

/// The server's topics.
pub(crate) fn topics() -> Vec<CompletionCandidate> {
    candidates(topic_names(&remote()).into_iter())
}

/// The groups of the topic that the command line has already.
pub(crate) fn groups() -> Vec<CompletionCandidate> {
    let remote = remote();
    let topics = topic_names(&remote);
    let Some(topic) = words().into_iter().find(|word| topics.contains(word)) else {
        return Vec::new();
    };
    let query = GroupQuery { topic, group: None };
    let listed = remote.and_then(|remote| {
        remote
            .get::<GroupList>(&format!("/groups?{}", query.to_query()))
            .ok()
    });
    let groups = listed.map(|list| list.groups).unwrap_or_default();
    candidates(groups.into_iter().map(|group| group.group.to_string()))
}

fn topic_names(remote: &Option<Remote>) -> Vec<String> {
    let listed = remote.as_ref();
    let listed = listed.and_then(|remote| remote.get::<TopicList>("/topics").ok());
    let topics = listed.map(|list| list.topics).unwrap_or_default();
    topics.into_iter().map(|info| info.topic).collect()
}

/// The server that the unfinished command line means.
fn remote() -> Option<Remote> {
    let words = words();
    let flag = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let url = flag("--url").or_else(|| variable("PROMBUS_URL"));
    let args = RemoteArgs {
        url: url.and_then(|url| server_url::parse(&url).ok()),
        context: flag("--context").or_else(|| variable("PROMBUS_CONTEXT")),
        token: flag("--token").or_else(|| variable("PROMBUS_TOKEN")),
        ca: flag("--ca")
            .or_else(|| variable("PROMBUS_CA"))
            .map(Into::into),
        ..RemoteArgs::default()
    };
    args.remote_within(Some(TIMEOUT)).ok()
}

/// The words of the command line that is being completed, which follow `--`.
fn words() -> Vec<String> {
    std::env::args().skip_while(|word| word != "--").collect()
}

fn candidates(names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    names
        .take(MAX_CANDIDATES)
        .map(CompletionCandidate::new)
        .collect()
}
