//! What has to be done to bring a server to what topic files say.

use crate::remote::{Remote, read};
use crate::topic_files::TopicFile;
use anyhow::{Context, bail};
use prombus_api::http::{
    SchemaCheck, SchemaList, SchemaQuery, SchemaVersion, TopicConfig, TopicList,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use ureq::http::Method;

/// One change.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Step {
    action: &'static str,
    topic: String,
    pub(super) detail: String,
    #[serde(skip)]
    pub(super) method: Method,
    #[serde(skip)]
    pub(super) path: String,
    #[serde(skip)]
    pub(super) body: Vec<u8>,
}

/// The changes in the order in which they are made: all topics first, then their schemas.
pub(super) fn plan(remote: &Remote, files: &[TopicFile]) -> anyhow::Result<Vec<Step>> {
    let topics: TopicList = remote.get("/topics")?;
    let present: BTreeMap<String, TopicConfig> = topics
        .topics
        .into_iter()
        .map(|info| (info.topic, info.config))
        .collect();
    let list: SchemaList = remote.get("/schemas")?;
    let registered: BTreeSet<String> = list
        .schemas
        .into_iter()
        .map(|schema| schema.topic)
        .collect();
    let mut seen = BTreeSet::new();
    let (mut steps, mut schema_steps) = (Vec::new(), Vec::new());
    for file in files {
        let about = || file.path.display().to_string();
        file.check().with_context(about)?;
        if !seen.insert(&file.topic) {
            bail!("{}: topic {} is declared twice", about(), file.topic);
        }
        steps.extend(topic_step(file, present.get(&file.topic)));
        if let Some(text) = file.schema_text().with_context(about)? {
            let is_registered = registered.contains(&file.topic);
            let step = schema_step(remote, file, &text, is_registered);
            schema_steps.extend(step.with_context(about)?);
        }
    }
    steps.extend(schema_steps);
    Ok(steps)
}

fn topic_step(file: &TopicFile, present: Option<&TopicConfig>) -> Option<Step> {
    let mut wanted = file.config();
    if let Some(present) = present {
        // What a file does not say, or cannot say, stays as it is.
        wanted.partitions = wanted.partitions.or(present.partitions);
        wanted.schema = wanted.schema.or_else(|| present.schema.clone());
        if *present == wanted {
            return None;
        }
    }
    let fields = |config: &TopicConfig| match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let before = present.map(fields).unwrap_or_default();
    let after = fields(&wanted);
    Some(Step {
        action: match present {
            Some(_) => "change topic",
            None => "create topic",
        },
        topic: file.topic.clone(),
        detail: changes(&before, &after),
        method: Method::PUT,
        path: format!("/topics/{}", file.topic),
        body: Value::Object(after).to_string().into_bytes(),
    })
}

/// Which settings change, and from what to what.
fn changes(before: &Map<String, Value>, after: &Map<String, Value>) -> String {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter_map(|name| {
        let (before, after) = (before.get(name), after.get(name));
        match (before, after) {
            (None, Some(after)) => Some(format!("{name}: {after}")),
            (Some(before), None) => Some(format!("{name}: {before} → unset")),
            (Some(before), Some(after)) if before != after => {
                Some(format!("{name}: {before} → {after}"))
            }
            _ => None,
        }
    });
    changed.collect::<Vec<_>>().join(", ")
}

fn schema_step(
    remote: &Remote,
    file: &TopicFile,
    text: &str,
    is_registered: bool,
) -> anyhow::Result<Option<Step>> {
    let topic = &file.topic;
    if is_registered {
        let latest: SchemaVersion = remote.get(&format!("/schemas/{topic}/latest"))?;
        if serde_json::from_str::<Value>(text).is_ok_and(|schema| schema == latest.schema) {
            return Ok(None);
        }
    }
    let query = SchemaQuery {
        compatibility: file.compatibility().map(|mode| mode.to_string()),
        dry_run: false,
    };
    let path = format!("/schemas/{topic}/check?{}", query.to_query());
    let reply = remote.send(Method::POST, path.trim_end_matches('?'), text.as_bytes())?;
    let check: SchemaCheck = read(&reply)?;
    if !check.compatible {
        let reason = check.reason.unwrap_or_default();
        bail!("the schema of {topic} would be refused: {reason}");
    }
    Ok(Some(Step {
        action: "register schema",
        topic: topic.clone(),
        detail: match check.latest {
            Some(latest) => format!("follows version {latest}, {}", check.compatibility),
            None => format!("the first, {}", check.compatibility),
        },
        method: Method::POST,
        path: format!("/schemas/{topic}"),
        body: text.as_bytes().to_vec(),
    }))
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.action, self.topic)
    }
}
