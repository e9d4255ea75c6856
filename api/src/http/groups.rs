//! `/groups`: the groups of a topic as they are.

use super::query::query;
use crate::scan::object;
use prombus_interface::schemas::{Group, Topic};
use prombus_interface::{FieldFilter, GroupInfo, Ordering};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

query! {
    /// Which group is meant: `/lag` and `/explain` need one, `/groups` and `/cursors` take all without.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct GroupQuery {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group; all of the topic where it is left out.
        #[schemars(with = "Option<Group>")]
        pub group: Option<String>,
    }
}

object! {
    /// The body of `PATCH /groups`: changes what belongs to a group; what is left out stays.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct GroupChange {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group.
        #[schemars(with = "Group")]
        pub group: String,
        /// After how many failed deliveries an event is dead.
        pub max_attempts: Option<u32> as "maxAttempts",
        /// In which order it gets events.
        pub ordering: Option<Ordering>,
        /// Which events it wants; an empty one wants all.
        pub filter: Option<FieldFilter>,
    }
}

object! {
    /// The body of `POST /groups/pause`, `POST /groups/resume` and `POST /cursors/undo`: which group.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct NamedGroup {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group.
        #[schemars(with = "Group")]
        pub group: String,
    }
}

/// The reply of `GET /groups`: the groups of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupList {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// In the order of their names.
    pub groups: Vec<GroupInfo>,
}
