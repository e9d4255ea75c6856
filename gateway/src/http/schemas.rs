//! `/schemas`: reading, registering, checking and removing the versions of a topic's schema. Reading needs `subscribe` on
//! the topic, changing needs `admin`.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use hyper::body::Bytes;
use prombus::{
    CheckedSchema, Compatibility, Finding, RegisterSchema, RetainedCheck, SchemaInfo,
    SchemaVersion as BusVersion,
};
use prombus_api::Code;
use prombus_api::http::{
    AffectedGroup, FailingEvent, RegisteredSchema, RetainedEvents, SchemaCheck, SchemaFinding,
    SchemaList, SchemaQuery, SchemaSummary, SchemaVersion, TopicSchemas,
};

/// The schemas of all topics that the caller may read.
pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    let infos = call.gateway().bus.all_schemas().await?;
    let visible = infos
        .into_iter()
        .filter(|info| call.may_look(&info.topic, None));
    let schemas = visible.map(|info| SchemaSummary {
        topic: info.topic.to_string(),
        compatibility: info.compatibility.to_string(),
        latest: info.latest,
        versions: info.versions.iter().map(|known| known.version).collect(),
    });
    Ok(reply::json(&SchemaList {
        schemas: schemas.collect(),
    }))
}

pub(super) async fn get(call: Call) -> Result<Response, ApiError> {
    call.allow_looking(&call.topic, None)?;
    let info = call.gateway().bus.schemas(&call.topic).await?;
    Ok(reply::json(&wire_schemas(info)))
}

pub(super) async fn get_version(call: Call) -> Result<Response, ApiError> {
    call.allow_looking(&call.topic, None)?;
    let version = wanted_version(&call.key)?;
    let found = call.gateway().bus.schema(&call.topic, version).await?;
    Ok(reply::json(&wire_version(found)))
}

/// Registers the schema in the body, or says what would come of it.
pub(super) async fn register(mut call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Admin, &call.topic, None)?;
    let wanted = SchemaQuery::parse(&call.query()?)?;
    let compatibility = mode(&wanted)?;
    let body = call.json().await?;
    let schema = text(&body)?;
    let bus = &call.gateway().bus;
    if wanted.dry_run {
        let checked = bus.check_schema(&call.topic, schema, compatibility).await?;
        let retained = bus.check_retained(&call.topic, schema).await?;
        return Ok(reply::json(&wire_check(
            &call.topic,
            checked,
            Some(retained),
        )));
    }
    let options = RegisterSchema { compatibility };
    let registered = bus.register_schema(&call.topic, schema, options).await?;
    Ok(reply::json(&RegisteredSchema {
        topic: call.topic.clone(),
        version: registered.version,
        unchanged: registered.unchanged,
        compatibility: registered.compatibility.to_string(),
    }))
}

/// Whether the schema in the body may follow the earlier ones.
pub(super) async fn check(mut call: Call) -> Result<Response, ApiError> {
    call.allow_looking(&call.topic, None)?;
    let wanted = SchemaQuery::parse(&call.query()?)?;
    let compatibility = mode(&wanted)?;
    let body = call.json().await?;
    let bus = &call.gateway().bus;
    let checked = bus.check_schema(&call.topic, text(&body)?, compatibility);
    Ok(reply::json(&wire_check(&call.topic, checked.await?, None)))
}

pub(super) async fn remove(call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Admin, &call.topic, None)?;
    call.gateway().bus.remove_schema(&call.topic, None).await?;
    Ok(reply::nothing())
}

pub(super) async fn remove_version(call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Admin, &call.topic, None)?;
    let bus = &call.gateway().bus;
    let version = match wanted_version(&call.key)? {
        Some(version) => version,
        None => bus.schemas(&call.topic).await?.latest,
    };
    bus.remove_schema(&call.topic, Some(version)).await?;
    Ok(reply::nothing())
}

/// The version in the path; `None` for the latest.
fn wanted_version(written: &str) -> Result<Option<u32>, ApiError> {
    if written == "latest" {
        return Ok(None);
    }
    match written.parse() {
        Ok(version) if version > 0 => Ok(Some(version)),
        _ => {
            let message = "version in the path: expected a number from 1, or latest";
            Err(ApiError::new(Code::BadFrame, message))
        }
    }
}

fn mode(wanted: &SchemaQuery) -> Result<Option<Compatibility>, ApiError> {
    let mode = wanted.compatibility.as_deref().map(parse_mode);
    mode.transpose()
}

/// A mode by its name.
pub(super) fn parse_mode(word: &str) -> Result<Compatibility, ApiError> {
    word.parse()
        .map_err(|error: prombus::UnknownCompatibility| {
            ApiError::new(Code::BadFrame, error.to_string())
        })
}

fn text(body: &Bytes) -> Result<&str, ApiError> {
    std::str::from_utf8(body).map_err(|_| ApiError::new(Code::BadSchema, "the schema is not UTF-8"))
}

fn wire_schemas(info: SchemaInfo) -> TopicSchemas {
    TopicSchemas {
        topic: info.topic.to_string(),
        compatibility: info.compatibility.to_string(),
        latest: info.latest,
        versions: info.versions.into_iter().map(wire_version).collect(),
    }
}

fn wire_version(known: BusVersion) -> SchemaVersion {
    SchemaVersion {
        version: known.version,
        ts: known.ts,
        // What was registered is JSON.
        schema: serde_json::from_str(&known.schema).unwrap_or_default(),
    }
}

fn wire_check(topic: &str, checked: CheckedSchema, retained: Option<RetainedCheck>) -> SchemaCheck {
    let reason = checked.incompatible.as_ref().map(ToString::to_string);
    let findings = checked.incompatible.map(|reasons| reasons.findings);
    SchemaCheck {
        topic: topic.to_owned(),
        compatible: reason.is_none(),
        compatibility: checked.compatibility.to_string(),
        latest: checked.latest,
        reason,
        findings: findings.into_iter().flatten().map(wire_finding).collect(),
        retained: retained.map(wire_retained),
    }
}

fn wire_finding(finding: Finding) -> SchemaFinding {
    SchemaFinding {
        path: finding.path,
        rule: finding.rule.as_str().to_owned(),
        detail: finding.detail,
        proven: finding.rule.is_proven(),
    }
}

fn wire_retained(check: RetainedCheck) -> RetainedEvents {
    let failing = check.first_failing.into_iter().map(|event| FailingEvent {
        id: event.id,
        seq: event.seq,
        path: event.path,
        reason: event.reason,
    });
    let groups = check.groups.into_iter().map(|group| AffectedGroup {
        group: group.group.to_string(),
        members: group.members as u64,
        failing_ahead: group.failing_ahead,
    });
    RetainedEvents {
        checked: check.checked,
        failing: check.failing,
        first_failing: failing.collect(),
        groups: groups.collect(),
    }
}
