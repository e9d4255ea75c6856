//! Topics and groups: made, looked at, changed and removed, as [`prombus::Bus`] does it in process. Over HTTP.
//!
//! [`prombus::Bus`]: https://docs.rs/prombus

use crate::client::Client;
use crate::error::{InvalidField, RequestError};
use crate::http_client::{ask, bad_reply, send};
use http::Method;
use prombus_api::http::{
    Body as _, CursorList, GroupChange, GroupList, GroupQuery, NamedGroup, Node, NodeList, Seek,
    SeekReply, Shadow, ShadowReply, SnapshotReply, TopicConfig, TopicInfo, TopicList,
};
use prombus_interface::{Cursor, Explanation, GroupInfo, Lag, StartAt};

impl Client {
    /// Makes a topic, or changes how it is kept.
    pub async fn configure_topic(
        &self,
        topic: &str,
        config: &TopicConfig,
    ) -> Result<(), RequestError> {
        let target = topic_target(topic, "")?;
        let reply = send(self.core(), Method::PUT, &target, config.to_json()).await;
        reply.map(drop)
    }

    /// Changes how a topic is kept, also the number of its partitions although events are stored: keys move to other
    /// partitions from here on.
    pub async fn repartition_topic(
        &self,
        topic: &str,
        config: &TopicConfig,
    ) -> Result<(), RequestError> {
        let target = topic_target(topic, "?force=1")?;
        let reply = send(self.core(), Method::PUT, &target, config.to_json()).await;
        reply.map(drop)
    }

    /// A topic as it is.
    pub async fn topic(&self, topic: &str) -> Result<TopicInfo, RequestError> {
        let target = topic_target(topic, "")?;
        ask(self.core(), Method::GET, &target, Vec::new()).await
    }

    /// All topics that the token lets one see.
    pub async fn topics(&self) -> Result<Vec<TopicInfo>, RequestError> {
        let list: TopicList = ask(self.core(), Method::GET, "/topics", Vec::new()).await?;
        Ok(list.topics)
    }

    /// Forgets all events of a topic. Positions go on, groups stay.
    pub async fn purge_topic(&self, topic: &str) -> Result<(), RequestError> {
        let target = topic_target(topic, "/purge")?;
        let reply = send(self.core(), Method::POST, &target, Vec::new()).await;
        reply.map(drop)
    }

    /// Brings the snapshot of a topic up to date now, and says up to which position it is. The server does this by itself
    /// every `snapshot_interval`.
    pub async fn snapshot(&self, topic: &str) -> Result<u64, RequestError> {
        let target = topic_target(topic, "/snapshot")?;
        let reply: SnapshotReply = ask(self.core(), Method::POST, &target, Vec::new()).await?;
        Ok(reply.seq)
    }

    /// Removes a topic with its events and groups.
    pub async fn delete_topic(&self, topic: &str) -> Result<(), RequestError> {
        let target = topic_target(topic, "")?;
        let reply = send(self.core(), Method::DELETE, &target, Vec::new()).await;
        reply.map(drop)
    }

    /// The groups of a topic.
    pub async fn groups(&self, topic: &str) -> Result<Vec<GroupInfo>, RequestError> {
        let list: GroupList = self.ask_of("/groups", topic, None).await?;
        Ok(list.groups)
    }

    /// A group as it is.
    pub async fn group(&self, topic: &str, group: &str) -> Result<GroupInfo, RequestError> {
        Ok(self.explain(topic, group).await?.group)
    }

    /// Why a group does or does not get on.
    pub async fn explain(&self, topic: &str, group: &str) -> Result<Explanation, RequestError> {
        self.ask_of("/explain", topic, Some(group)).await
    }

    /// Where a group is.
    pub async fn cursor(&self, topic: &str, group: &str) -> Result<Cursor, RequestError> {
        let list: CursorList = self.ask_of("/cursors", topic, Some(group)).await?;
        let found = list
            .cursors
            .into_iter()
            .find(|found| &*found.group == group);
        found.ok_or_else(|| bad_reply("the group's cursor is not among those listed"))
    }

    /// Where the groups of a topic are.
    pub async fn cursors(&self, topic: &str) -> Result<Vec<Cursor>, RequestError> {
        let list: CursorList = self.ask_of("/cursors", topic, None).await?;
        Ok(list.cursors)
    }

    /// How far a group is behind.
    pub async fn lag(&self, topic: &str, group: &str) -> Result<Lag, RequestError> {
        self.ask_of("/lag", topic, Some(group)).await
    }

    /// Sets a group's cursor.
    pub async fn seek(
        &self,
        topic: &str,
        group: &str,
        to: StartAt,
    ) -> Result<SeekReply, RequestError> {
        self.seek_with(topic, group, to, false).await
    }

    /// What setting a group's cursor would do.
    pub async fn seek_dry_run(
        &self,
        topic: &str,
        group: &str,
        to: StartAt,
    ) -> Result<SeekReply, RequestError> {
        self.seek_with(topic, group, to, true).await
    }

    /// Takes the last seek of a group back: the cursor and what was unsettled are as they were before it.
    pub async fn undo_seek(&self, topic: &str, group: &str) -> Result<SeekReply, RequestError> {
        self.post_named("/cursors/undo", topic, group).await
    }

    /// Makes a throwaway group with a cursor of its own, which is fed as `shadow.group` was: to try a new consumer on real
    /// traffic. Its members subscribe under the name in the reply.
    pub async fn shadow_group(&self, shadow: &Shadow) -> Result<ShadowReply, RequestError> {
        ask(
            self.core(),
            Method::POST,
            "/groups/shadow",
            shadow.to_json(),
        )
        .await
    }

    /// Stops delivery to a group until [`Self::resume_group`], whoever its members are. What they hold stays theirs.
    pub async fn pause_group(&self, topic: &str, group: &str) -> Result<GroupInfo, RequestError> {
        self.post_named("/groups/pause", topic, group).await
    }

    /// Lets a paused group go on.
    pub async fn resume_group(&self, topic: &str, group: &str) -> Result<GroupInfo, RequestError> {
        self.post_named("/groups/resume", topic, group).await
    }

    /// Changes what belongs to a group and not to its members.
    pub async fn configure_group(&self, change: &GroupChange) -> Result<GroupInfo, RequestError> {
        ask(self.core(), Method::PATCH, "/groups", change.to_json()).await
    }

    /// The servers that share the store; none where the server has it for itself.
    pub async fn nodes(&self) -> Result<Vec<Node>, RequestError> {
        let list: NodeList = ask(self.core(), Method::GET, "/nodes", Vec::new()).await?;
        Ok(list.nodes)
    }

    /// Removes a group. Events stay in the topic.
    pub async fn remove_group(&self, topic: &str, group: &str) -> Result<(), RequestError> {
        let target = format!("/groups?{}", named(topic, Some(group)));
        let reply = send(self.core(), Method::DELETE, &target, Vec::new()).await;
        reply.map(drop)
    }

    async fn seek_with(
        &self,
        topic: &str,
        group: &str,
        to: StartAt,
        dry_run: bool,
    ) -> Result<SeekReply, RequestError> {
        let seek = Seek {
            topic: topic.to_owned(),
            group: group.to_owned(),
            to,
            dry_run,
        };
        ask(self.core(), Method::POST, "/cursors", seek.to_json()).await
    }

    async fn post_named<R: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        topic: &str,
        group: &str,
    ) -> Result<R, RequestError> {
        let named = NamedGroup {
            topic: topic.to_owned(),
            group: group.to_owned(),
        };
        ask(self.core(), Method::POST, path, named.to_json()).await
    }

    async fn ask_of<R: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        topic: &str,
        group: Option<&str>,
    ) -> Result<R, RequestError> {
        let target = format!("{path}?{}", named(topic, group));
        ask(self.core(), Method::GET, &target, Vec::new()).await
    }
}

fn named(topic: &str, group: Option<&str>) -> String {
    let query = GroupQuery {
        topic: topic.to_owned(),
        group: group.map(str::to_owned),
    };
    query.to_query()
}

/// A name is a part of the path only where it has nothing that means something there.
fn topic_target(topic: &str, behind: &str) -> Result<String, RequestError> {
    Ok(format!("/topics/{}{behind}", topic_part(topic)?))
}

/// A name as a part of a path.
pub(crate) fn topic_part(topic: &str) -> Result<&str, RequestError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if topic.is_empty() || !topic.bytes().all(is_plain) {
        let reason = "a topic's name has letters, digits, dots, _ and - only";
        return Err(InvalidField::new("topic", reason).into());
    }
    Ok(topic)
}
