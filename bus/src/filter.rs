//! Which events of a topic a group wants. What does not match is settled unseen.

use prombus_interface::FieldFilter;
use prombus_store::StoredEvent;
use std::fmt;
use std::sync::Arc;

/// A group's filter.
#[derive(Clone, Default)]
pub enum Filter {
    /// Every event.
    #[default]
    All,
    /// By the fields of the event; stored with the group.
    Fields(FieldFilter),
    /// Whatever a function says. It lives as long as the group has members: a function cannot be stored, so the subscriber that
    /// subscribes after a restart has to bring it again.
    Function(FilterFunction),
}

/// A filter in process.
pub type FilterFunction = Arc<dyn Fn(&StoredEvent) -> bool + Send + Sync>;

impl Filter {
    /// A filter that asks a function.
    pub fn function(function: impl Fn(&StoredEvent) -> bool + Send + Sync + 'static) -> Self {
        Self::Function(Arc::new(function))
    }

    /// Whether the group wants this event. A function that panics wants it: better seen twice than lost.
    pub fn matches(&self, event: &StoredEvent) -> bool {
        match self {
            Self::All => true,
            Self::Fields(fields) => fields.matches(event),
            Self::Function(function) => {
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| function(event)))
                    .unwrap_or(true)
            }
        }
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("All"),
            Self::Fields(fields) => fields.fmt(f),
            Self::Function(_) => f.write_str("Function"),
        }
    }
}
