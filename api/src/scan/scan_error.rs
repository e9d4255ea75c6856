//! What is wrong with a text: that it is no JSON, or that it is not the JSON it should be, and in which field.

use super::nearest::nearest;
use crate::code::Code;
use crate::error::ParseError;
use serde::de::IgnoredAny;

/// How much of a name from outside an error repeats.
const QUOTED_CHARS: usize = 64;

/// Something that is wrong. In a box, so that the results of the scanner stay small.
#[derive(Debug)]
pub(crate) struct ScanError(Box<Details>);

#[derive(Debug)]
struct Details {
    kind: Kind,
    /// The names of the fields around it, outermost first, with dots between.
    path: String,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Syntax { at: usize },
    Meaning(Code),
}

impl ScanError {
    /// The text is no JSON from this byte on.
    #[cold]
    pub(crate) fn syntax(at: usize, reason: &str) -> Self {
        Self::new(Kind::Syntax { at }, String::new(), reason.to_owned())
    }

    /// A value is not what it has to be.
    #[cold]
    pub(crate) fn wrong(reason: String) -> Self {
        Self::new(Kind::Meaning(Code::BadFrame), String::new(), reason)
    }

    /// A field has to be there.
    #[cold]
    pub(crate) fn missing(field: &str) -> Self {
        let message = "missing".to_owned();
        Self::new(Kind::Meaning(Code::BadFrame), field.to_owned(), message)
    }

    /// A field that is not known here, with the known one that was probably meant.
    #[cold]
    pub(crate) fn unknown(name: &str, known: &[&str], options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(|name| format!("opts.{name}")).collect();
        let options = options.iter().map(String::as_str);
        let reason = match nearest(name, known.iter().copied().chain(options)) {
            Some(meant) => format!("unknown field; did you mean {meant}?"),
            None => format!("unknown field; expected one of {}", known.join(", ")),
        };
        Self::wrong(reason)
    }

    /// A field that comes twice.
    #[cold]
    pub(crate) fn duplicate(name: &str) -> Self {
        Self::wrong("duplicate field".to_owned()).within(name)
    }

    /// There is no such op.
    #[cold]
    pub(crate) fn unknown_op(op: &str) -> Self {
        let message = format!("unknown op {:?}", quoted(op));
        Self::new(Kind::Meaning(Code::UnknownOp), String::new(), message)
    }

    fn new(kind: Kind, path: String, reason: String) -> Self {
        Self(Box::new(Details { kind, path, reason }))
    }

    /// The same fault, seen from the object around it.
    #[cold]
    pub(crate) fn within(mut self, name: &str) -> Self {
        let path = &mut self.0.path;
        if !path.is_empty() {
            path.insert(0, '.');
        }
        path.insert_str(0, &quoted(name));
        self
    }

    /// What to tell the sender of `text`, in which the fault was found. A value that is not what expected may be
    /// no JSON at all, here or further on, which is the better thing to say.
    #[cold]
    pub(crate) fn parse_error(self, text: &str) -> ParseError {
        if let Kind::Meaning(_) = self.0.kind
            && let Err(error) = serde_json::from_str::<IgnoredAny>(text)
        {
            return ParseError::new(Code::BadJson, format!("invalid JSON: {error}"));
        }
        self.into()
    }
}

impl From<ScanError> for ParseError {
    #[cold]
    fn from(error: ScanError) -> Self {
        let Details { kind, path, reason } = *error.0;
        match kind {
            Kind::Syntax { at } => Self::new(Code::BadJson, format!("{reason} at byte {at}")),
            Kind::Meaning(code) if path.is_empty() => Self::new(code, reason),
            Kind::Meaning(code) => Self::new(code, format!("{path}: {reason}")),
        }
    }
}

/// The beginning of a name from outside.
fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
