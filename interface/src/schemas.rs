//! What names and other texts look like, for the schemas of the types that have them: `#[schemars(with = "Topic")]`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// Declares kinds of values by their schemas.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $schema:tt)+) => {$(
        $(#[$doc])*
        pub enum $kind {}

        impl JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

kinds! {
    /// The name of a topic.
    Topic {"type": "string", "pattern": r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$", "minLength": 1, "maxLength": 249}
    /// The name of a group.
    Group {"type": "string", "pattern": "^[A-Za-z0-9_.:-]+$", "minLength": 1, "maxLength": 128}
    /// The id of an event.
    EventId {"type": "string", "pattern": "^[!-~]([ -~]*[!-~])?$", "minLength": 1, "maxLength": 64}
    /// The key of an event, or a pattern of keys.
    Key {"type": "string", "maxLength": 512}
    /// A query parameter that is yes or no; nothing behind its name is yes.
    Flag {"type": "string", "enum": ["0", "1", "true", "false", ""], "default": "0"}
    /// How fast a shadow group is fed.
    Pace {"oneOf": [{"type": "string", "enum": ["original", "max"]}, {"type": "number", "exclusiveMinimum": 0}]}
    /// What a new version of a topic's schema has to be beside the earlier ones.
    Compatibility {"type": "string", "enum": [
        "none", "backward", "forward", "full", "backward_transitive", "forward_transitive", "full_transitive",
    ]}
}
