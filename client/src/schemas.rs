//! The schemas of topics: read, checked, registered and removed. Over HTTP.

use crate::admin::topic_part;
use crate::client::Client;
use crate::error::RequestError;
use crate::http_client::{ask, send};
use http::Method;
use prombus_api::http::{
    RegisteredSchema, SchemaCheck, SchemaList, SchemaQuery, SchemaSummary, SchemaVersion,
    TopicSchemas,
};

impl Client {
    /// The schemas of all topics that the token lets one see, in short.
    pub async fn all_schemas(&self) -> Result<Vec<SchemaSummary>, RequestError> {
        let list: SchemaList = ask(self.core(), Method::GET, "/schemas", Vec::new()).await?;
        Ok(list.schemas)
    }

    /// All versions of a topic's schema.
    pub async fn schemas(&self, topic: &str) -> Result<TopicSchemas, RequestError> {
        let target = format!("/schemas/{}", topic_part(topic)?);
        ask(self.core(), Method::GET, &target, Vec::new()).await
    }

    /// One version of a topic's schema, or the latest.
    pub async fn schema(
        &self,
        topic: &str,
        version: Option<u32>,
    ) -> Result<SchemaVersion, RequestError> {
        let version = match version {
            Some(version) => version,
            None => self.schemas(topic).await?.latest,
        };
        let target = format!("/schemas/{}/{version}", topic_part(topic)?);
        ask(self.core(), Method::GET, &target, Vec::new()).await
    }

    /// Registers a new version of a topic's schema, from JSON text; from then on its events are held against it. The
    /// same schema again is the same version. `compatibility` is what the topic says where it is `None`.
    pub async fn register_schema(
        &self,
        topic: &str,
        schema: &str,
        compatibility: Option<&str>,
    ) -> Result<RegisteredSchema, RequestError> {
        let target = schema_target(topic, compatibility, false)?;
        ask(self.core(), Method::POST, &target, schema.into()).await
    }

    /// What would come of registering a schema: whether it may follow the earlier versions, and how the events that are
    /// retained fit it.
    pub async fn check_schema(
        &self,
        topic: &str,
        schema: &str,
        compatibility: Option<&str>,
    ) -> Result<SchemaCheck, RequestError> {
        let target = schema_target(topic, compatibility, true)?;
        ask(self.core(), Method::POST, &target, schema.into()).await
    }

    /// Removes a version of a topic's schema, or all of them. Its number is not used again.
    pub async fn remove_schema(
        &self,
        topic: &str,
        version: Option<u32>,
    ) -> Result<(), RequestError> {
        let topic = topic_part(topic)?;
        let target = match version {
            Some(version) => format!("/schemas/{topic}/{version}"),
            None => format!("/schemas/{topic}"),
        };
        let reply = send(self.core(), Method::DELETE, &target, Vec::new()).await;
        reply.map(drop)
    }
}

fn schema_target(
    topic: &str,
    compatibility: Option<&str>,
    dry_run: bool,
) -> Result<String, RequestError> {
    let query = SchemaQuery {
        compatibility: compatibility.map(str::to_owned),
        dry_run,
    };
    let topic = topic_part(topic)?;
    Ok(format!("/schemas/{topic}?{}", query.to_query()))
}
