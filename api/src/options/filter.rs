//! Which events a group wants.

use crate::names::Key;
use crate::scan::object;
use schemars::JsonSchema;
use std::collections::BTreeMap;

object! {
    /// A filter. An event matches when everything that is named here fits.
    #[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
    #[schemars(default)]
    pub struct Filter {
        /// The event has a key, and the key matches this pattern.
        #[schemars(with = "Option<Key>")]
        pub key: Option<String>,
        /// The event has all these headers with exactly these values.
        pub headers: BTreeMap<String, String>,
        /// The event has all these tags.
        pub tags: Vec<String>,
    }
}
