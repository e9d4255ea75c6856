//! HTTP: queries, bodies of requests and bodies of replies, each beside what it belongs to.
//!
//! Requests are read by the same scanner as frames, so that a field that is wrong is named: `object!` and `query!` make
//! that of their structs. Replies are plain structs, except where stored records are copied into them as they are. Doc
//! comments of bodies and their fields are the descriptions in the OpenAPI document.

mod age;
mod atomic;
mod body;
mod bulk;
mod cursors;
mod dashboard;
mod dead_letters;
mod diff;
mod error;
mod find;
mod groups;
mod health;
mod latest;
mod nodes;
mod publish;
mod pull;
mod query;
mod read;
mod schedules;
mod schemas;
mod settle;
mod shadow;
mod state;
mod topics;

pub use age::Age;
pub use atomic::{PublishAtomic, PublishAtomicReply};
pub use body::Body;
pub use bulk::{BulkReply, LineError};
pub use cursors::{CursorList, Seek, SeekReply};
pub use dashboard::{
    Access, Allowed, Attention, Causes, CausesQuery, Finding, FindingKind, GroupPage, GroupRow,
    Histogram, HistogramQuery, History, HistoryQuery, Level, PageQuery, ProjectorSummary,
    ServerStatus, SharedLogSummary, StoreSummary, TopicPage, TopicRow,
};
pub use dead_letters::{
    Attempt, DeadLetter, Redrive, RedriveReply, RemoveLettersQuery, RemovedLetters, WhichLetters,
    write_dead_letter,
};
pub use diff::{ChangedKey, DiffPage, DiffQuery};
pub use error::ErrorBody;
pub use find::{FindBy, FindPage, FindQuery, write_find_page};
pub use groups::{GroupChange, GroupList, GroupQuery, NamedGroup};
pub use health::Health;
pub use latest::{LatestPage, LatestQuery, write_latest_page};
pub use nodes::{Node, NodeList};
pub use publish::{BatchReply, Envelope, PublishReply, is_event_header, publish_query};
pub use pull::{Context, Delivery, Pull, Pulled, write_pulled};
#[cfg(test)]
pub(crate) use query::Parameters;
pub use query::{Query, QueryWriter, percent_encoded};
pub use read::{EventPage, ExportQuery, ReadQuery, write_event_page};
pub use schedules::{PendingSchedule, SchedulePage, ScheduleReply, SchedulesQuery};
pub use schemas::{
    AffectedGroup, FailingEvent, RegisteredSchema, RetainedEvents, SchemaCheck, SchemaFinding,
    SchemaList, SchemaQuery, SchemaSummary, SchemaVersion, TopicSchemas,
};
pub use settle::{FailedId, PublishedEvent, SettleReply};
pub use shadow::{Pace, Shadow, ShadowReply};
pub use state::{ListPage, ListQuery, StateItem, StateText, write_list_page};
pub use topics::{Durability, SnapshotReply, TopicConfig, TopicInfo, TopicList};

#[cfg(test)]
mod tests;
