//! Types for TypeScript and Rust from the schemas of topics. What a type cannot say (ranges, patterns, `not`) is left to
//! the schema; what it can say is never narrower than the schema.

mod names;
mod rust;
mod typescript;

use crate::document::Schema;
use std::fmt;
use std::str::FromStr;

/// A language that types are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Types alone, without a line that runs.
    TypeScript,
    /// Structs and enums with serde.
    Rust,
}

/// The types of these topics, as one file. Topics come in the order they are given.
pub fn codegen(language: Language, topics: &[(&str, &Schema)]) -> String {
    match language {
        Language::TypeScript => typescript::file(topics),
        Language::Rust => rust::file(topics),
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "ts" | "typescript" => Ok(Self::TypeScript),
            "rust" => Ok(Self::Rust),
            _ => Err(format!("unknown language {word:?}; expected ts or rust")),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TypeScript => "ts",
            Self::Rust => "rust",
        })
    }
}
