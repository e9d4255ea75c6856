//! The stable error codes: the words that clients branch on, and the HTTP status that goes with each.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt;

/// Declares the codes once: variant, word and meaning.
macro_rules! codes {
    ($($variant:ident $word:literal $meaning:literal),+ $(,)?) => {
        /// What went wrong, for programs. A newer server may know more words; one that was published keeps its meaning and
        /// is never used for another.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, JsonSchema)]
        pub enum Code {
            $(#[doc = $meaning] #[schemars(rename = $word)] $variant,)+
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// Its name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $word),+ }
            }

            /// What it means, for documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning),+ }
            }

            /// The code of a word, `None` where there is no such code.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Code::$variant),)+ _ => None }
            }
        }
    };
}

codes! {
    BadJson "bad_json" "The text is not JSON, or nested deeper than 128.",
    BadFrame "bad_frame" "A field or a parameter is missing, or is not what it has to be.",
    UnknownOp "unknown_op" "There is no such op.",
    BadTopic "bad_topic" "The name of a topic, or a pattern, is not one.",
    BadGroup "bad_group" "The name of a group is not one.",
    Unauthorized "unauthorized" "A token is needed first.",
    BadToken "bad_token" "The token is not valid.",
    TokenExpired "token_expired" "The token was valid once.",
    Forbidden "forbidden" "The token does not allow this.",
    RateLimited "rate_limited" "Too much at once; `retry_after_ms` says when to come again.",
    TooLarge "too_large" "The payload, or another part, is larger than allowed.",
    AlreadySubscribed "already_subscribed" "This connection has the subscription already.",
    NotSubscribed "not_subscribed" "This connection has no such subscription.",
    UnknownId "unknown_id" "The topic holds no event with this id, or the group does not hold it.",
    LeaseLost "lease_lost" "Another member holds the event now.",
    IdConflict "id_conflict" "The topic holds this id with another payload.",
    GroupMismatch "group_mismatch" "An option belongs to the group, and the group has another value; or there is no seek to undo any more.",
    SeqMismatch "seq_mismatch" "The topic's last position, or that of the key, is not the expected one; `actual` says which it is.",
    UnknownTopic "unknown_topic" "There is no such topic.",
    SchemaInvalid "schema_invalid" "The payload does not fit the topic's schema.",
    PublishFailed "publish_failed" "The store did not take the event.",
    AckFailed "ack_failed" "The acknowledgement could not be done.",
    ShuttingDown "shutting_down" "The server is going down.",
    UnknownGroup "unknown_group" "The topic has no such group. Only over HTTP.",
    UnknownKey "unknown_key" "The topic has no state for this key. Only over HTTP.",
    DeletedKey "deleted_key" "The key was deleted. Only over HTTP.",
    HistoryGone "history_gone" "What was then is not known any more: compaction or retention took it. Only over HTTP.",
    BadSchema "bad_schema" "The text is no JSON Schema that is taken. Only over HTTP.",
    SchemaIncompatible "schema_incompatible" "The schema may not follow an earlier version. Only over HTTP.",
    UnknownSchema "unknown_schema" "The topic has no such version of its schema. Only over HTTP.",
    NotFound "not_found" "There is nothing at this path. Only over HTTP.",
    MethodNotAllowed "method_not_allowed" "The path is there, but not for this method. Only over HTTP.",
    Timeout "timeout" "The request did not arrive in time. Only over HTTP.",
    ReadFailed "read_failed" "The store could not be read. Only over HTTP.",
}

impl Code {
    /// The HTTP status that goes with it.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::BadJson
            | Self::BadFrame
            | Self::UnknownOp
            | Self::BadTopic
            | Self::BadGroup
            | Self::SchemaInvalid
            | Self::BadSchema => 400,
            Self::Unauthorized | Self::BadToken | Self::TokenExpired => 401,
            Self::Forbidden => 403,
            Self::UnknownId
            | Self::UnknownTopic
            | Self::UnknownGroup
            | Self::UnknownKey
            | Self::DeletedKey
            | Self::UnknownSchema
            | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::HistoryGone => 410,
            Self::Timeout => 408,
            Self::AlreadySubscribed
            | Self::NotSubscribed
            | Self::LeaseLost
            | Self::IdConflict
            | Self::GroupMismatch
            | Self::SchemaIncompatible => 409,
            Self::SeqMismatch => 412,
            Self::TooLarge => 413,
            Self::RateLimited => 429,
            Self::PublishFailed | Self::AckFailed | Self::ShuttingDown | Self::ReadFailed => 503,
        }
    }

    /// Whether the same request may succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(self.http_status(), 408 | 429 | 503)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_word_reads_back_and_stands_once() {
        let words: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for &code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(code));
            assert_eq!(serde_json::to_string(&code).unwrap(), format!("\"{code}\""));
        }
        assert_eq!(Code::parse("nope"), None);
        assert_eq!(Code::parse("BAD_JSON"), None);
    }

    #[test]
    fn the_codes_of_the_contract_are_all_here() {
        let contract = "bad_json bad_frame unknown_op bad_topic bad_group unauthorized bad_token token_expired \
            forbidden rate_limited too_large already_subscribed not_subscribed unknown_id lease_lost id_conflict \
            group_mismatch seq_mismatch unknown_topic schema_invalid publish_failed ack_failed shutting_down";
        for word in contract.split_whitespace() {
            assert!(Code::parse(word).is_some(), "{word}");
        }
    }

    #[test]
    fn statuses_fit() {
        for (word, status) in [
            ("rate_limited", 429),
            ("unknown_topic", 404),
            ("unknown_id", 404),
            ("token_expired", 401),
            ("forbidden", 403),
            ("too_large", 413),
            ("id_conflict", 409),
            ("seq_mismatch", 412),
            ("lease_lost", 409),
            ("shutting_down", 503),
            ("bad_json", 400),
        ] {
            assert_eq!(
                Code::parse(word).map(Code::http_status),
                Some(status),
                "{word}"
            );
        }
        assert!(Code::RateLimited.is_retryable());
        assert!(!Code::IdConflict.is_retryable());
    }
}
