//! CloudEvents: their route, and the media types that other routes take and give.

use super::operation::{Operation, reference};
use super::schemas::inline;
use prombus_interface::schemas::{EventId, Topic};
use serde_json::{Value, json};

/// The media types of a body with CloudEvents.
pub(super) fn bodies() -> Value {
    json!({
        "application/cloudevents+json": {"schema": event()},
        "application/cloudevents-batch+json": {"schema": list()},
    })
}

/// A reply with a list of CloudEvents, beside the other media types of a route.
pub(super) fn with_list(mut content: Value) -> Value {
    content["application/cloudevents-batch+json"] = json!({"schema": list()});
    content
}

pub(super) fn publish() -> Value {
    let mut content = bodies();
    content["application/json"] =
        json!({"schema": {"description": "The data, with the attributes as headers `ce-…`."}});
    Operation::new("publishCloudEvents", "Publish CloudEvents")
        .query::<Topic>("topic", "Where to; without it, each goes to the topic that is named as its type.")
        .query::<String>("sid", "Boot or session id of the publisher.")
        .query::<String>("tags", "Free labels, with commas between.")
        .header("ce-specversion", "In the binary mode: `1.0`. All other attributes are headers that begin with `ce-`, too.")
        .bodies(content)
        .replies(
            "200",
            "Stored at the topic's durability; a batch as a whole.",
            json!({
                "application/json": {"schema": {"oneOf": [reference("PublishReply"), reference("BatchReply")]}},
            }),
        )
        .build()
}

fn list() -> Value {
    json!({"type": "array", "items": event()})
}

fn event() -> Value {
    let text =
        |description: &str| json!({"type": "string", "minLength": 1, "description": description});
    let mut id = inline::<EventId>();
    id["description"] = json!("The event's id.");
    json!({
        "type": "object",
        "description": "A CloudEvent 1.0 in its JSON format.",
        "required": ["specversion", "id", "source", "type"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": id,
            "source": text("Where it happened; `/topics/<topic>` of an event that was not published as a CloudEvent."),
            "type": text("What happened; the topic of an event that was not published as a CloudEvent."),
            "subject": text("The event's key."),
            "time": text("The event's time, as RFC 3339."),
            "datacontenttype": text("The media type of the data."),
            "dataschema": text("The schema of the data."),
            "data": {"description": "The payload."},
            "data_base64": {"type": "string", "description": "The payload where it is bytes."},
        },
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    })
}
