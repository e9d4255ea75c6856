//! One operation of a path: its parameters, its body and its replies.

use super::schemas::{inline, without_null};
use crate::http::Parameters;
use prombus_interface::schemas::{EventId, Flag, Key, Topic};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// A reference to another schema.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// An operation that is being described.
pub(super) struct Operation {
    fields: Map<String, Value>,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
}

impl Operation {
    /// An operation by its id and what it does.
    pub(super) fn new(id: &str, summary: &str) -> Self {
        let mut fields = Map::new();
        fields.insert("operationId".to_owned(), json!(id));
        fields.insert("summary".to_owned(), json!(summary));
        let mut responses = Map::new();
        responses.insert(
            "default".to_owned(),
            json!({"$ref": "#/components/responses/Error"}),
        );
        Self {
            fields,
            parameters: Vec::new(),
            responses,
        }
    }

    /// The topic in the path.
    pub(super) fn topic_in_path(self) -> Self {
        self.parameter("path", "topic", true, inline::<Topic>(), "The topic.")
    }

    /// The key behind it: all that follows, slashes too.
    pub(super) fn key_in_path(self) -> Self {
        let description =
            "The key: everything behind the topic, slashes too, percent-encoded as in any path.";
        self.parameter("path", "key", true, inline::<Key>(), description)
    }

    /// The id at the end of the path.
    pub(super) fn id_in_path(self, description: &str) -> Self {
        self.parameter("path", "id", true, inline::<EventId>(), description)
    }

    /// The version of a schema behind it.
    pub(super) fn version_in_path(self) -> Self {
        let description = "The number of the version, or `latest`.";
        self.parameter("path", "version", true, inline::<String>(), description)
    }

    /// The parameters of a query, which its type describes.
    pub(super) fn parameters<Q: Parameters + JsonSchema>(self) -> Self {
        self.fields_of::<Q>(Q::NAMES)
    }

    /// Some fields of a type as parameters.
    pub(super) fn fields_of<T: JsonSchema>(mut self, names: &[&str]) -> Self {
        let object = inline::<T>();
        let required = object["required"].as_array();
        for name in names {
            let mut schema = object["properties"][name].clone();
            without_null(&mut schema);
            let description = schema["description"].take();
            let description = description.as_str().unwrap_or_default();
            schema
                .as_object_mut()
                .map(|schema| schema.remove("description"));
            let required = required.is_some_and(|names| names.contains(&json!(name)));
            self = self.parameter("query", name, required, schema, description);
        }
        self
    }

    /// A parameter that may be left out.
    pub(super) fn query<T: JsonSchema>(self, name: &str, description: &str) -> Self {
        self.query_of(name, inline::<T>(), description)
    }

    /// The same with more constraints than a type has.
    pub(super) fn query_of(self, name: &str, schema: Value, description: &str) -> Self {
        self.parameter("query", name, false, schema, description)
    }

    /// A parameter that has to be there.
    pub(super) fn required<T: JsonSchema>(self, name: &str, description: &str) -> Self {
        self.parameter("query", name, true, inline::<T>(), description)
    }

    /// The most of one page, with what it is where it is left out.
    pub(super) fn limit(self, default: Option<u32>, description: &str) -> Self {
        let mut schema = inline::<u64>();
        schema["minimum"] = json!(1);
        if let Some(default) = default {
            schema["default"] = json!(default);
        }
        self.query_of("limit", schema, description)
    }

    /// The parameters that name a place.
    pub(super) fn position(self, words: &[&str]) -> Self {
        let from = json!({"type": "string", "enum": words, "default": words[0]});
        self.query_of("from", from, "Where to begin.")
            .query::<u64>(
                "ts",
                "With `from=ts`: the first event at or after this epoch millisecond.",
            )
            .query::<String>("afterId", "With `from=afterId`: the event after this one.")
            .query::<u64>("seq", "With `from=seq`: this position.")
    }

    /// A header of the request.
    pub(super) fn header(self, name: &str, description: &str) -> Self {
        self.parameter("header", name, false, inline::<String>(), description)
    }

    /// A body of JSON with this schema.
    pub(super) fn body(self, schema: &str) -> Self {
        self.bodies(json!({"application/json": {"schema": reference(schema)}}))
    }

    /// A body of JSON with this schema that may be left out.
    pub(super) fn optional_body(self, schema: &str) -> Self {
        let mut operation = self.body(schema);
        operation.fields["requestBody"]["required"] = Value::Bool(false);
        operation
    }

    /// A body by media type.
    pub(super) fn bodies(mut self, content: Value) -> Self {
        let body = json!({"required": true, "content": content});
        self.fields.insert("requestBody".to_owned(), body);
        self
    }

    /// A reply of JSON with this schema.
    pub(super) fn reply(self, description: &str, schema: &str) -> Self {
        self.replies(
            "200",
            description,
            json!({"application/json": {"schema": reference(schema)}}),
        )
    }

    /// A reply by media type.
    pub(super) fn replies(mut self, status: &str, description: &str, content: Value) -> Self {
        let response = json!({"description": description, "content": content});
        self.responses.insert(status.to_owned(), response);
        self
    }

    /// Headers of a reply that was described before.
    pub(super) fn reply_headers(mut self, status: &str, headers: Value) -> Self {
        if let Some(Value::Object(response)) = self.responses.get_mut(status) {
            response.insert("headers".to_owned(), headers);
        }
        self
    }

    /// A reply that is a head only.
    pub(super) fn replies_nothing(self, status: &str, description: &str, headers: Value) -> Self {
        let mut described = self;
        let response = json!({"description": description});
        described.responses.insert(status.to_owned(), response);
        described.reply_headers(status, headers)
    }

    /// A reply without a body.
    pub(super) fn empty_reply(mut self, description: &str) -> Self {
        self.responses
            .insert("204".to_owned(), json!({"description": description}));
        self
    }

    /// The finished description.
    pub(super) fn build(mut self) -> Value {
        if !self.parameters.is_empty() {
            self.fields
                .insert("parameters".to_owned(), Value::Array(self.parameters));
        }
        self.fields
            .insert("responses".to_owned(), Value::Object(self.responses));
        Value::Object(self.fields)
    }

    fn parameter(
        mut self,
        place: &str,
        name: &str,
        required: bool,
        schema: Value,
        description: &str,
    ) -> Self {
        self.parameters.push(json!({
            "in": place,
            "name": name,
            "required": required,
            "schema": schema,
            "description": description,
        }));
        self
    }
}

/// A parameter that is yes where it is left out.
pub(super) fn yes() -> Value {
    let mut schema = inline::<Flag>();
    schema["default"] = json!("1");
    schema
}
