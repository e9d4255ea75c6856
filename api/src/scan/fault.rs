//! What is wrong with a text: that it is no JSON, or that it is not the JSON it should be, and in which field.

use crate::code::Code;
use crate::refusal::Refusal;
use serde::de::IgnoredAny;

/// How much of a name from outside an error repeats.
const QUOTED_CHARS: usize = 64;

/// Something that is wrong. In a box, so that the results of the scanner stay small.
#[derive(Debug)]
pub(crate) struct Fault(Box<Wrong>);

#[derive(Debug)]
struct Wrong {
    kind: Kind,
    /// The names of the fields around it, outermost first, with dots between.
    path: String,
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Syntax { at: usize },
    Meaning(Code),
}

impl Fault {
    /// The text is no JSON from this byte on.
    #[cold]
    pub(crate) fn syntax(at: usize, why: &str) -> Self {
        Self::new(Kind::Syntax { at }, String::new(), why.to_owned())
    }

    /// A value is not what it has to be.
    #[cold]
    pub(crate) fn wrong(why: String) -> Self {
        Self::new(Kind::Meaning(Code::BadFrame), String::new(), why)
    }

    /// A field has to be there.
    #[cold]
    pub(crate) fn missing(field: &str) -> Self {
        let why = "it is missing".to_owned();
        Self::new(Kind::Meaning(Code::BadFrame), field.to_owned(), why)
    }

    /// There is no such op.
    #[cold]
    pub(crate) fn unknown_op(op: &str) -> Self {
        let why = format!("there is no op {:?}", quoted(op));
        Self::new(Kind::Meaning(Code::UnknownOp), String::new(), why)
    }

    fn new(kind: Kind, path: String, why: String) -> Self {
        Self(Box::new(Wrong { kind, path, why }))
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

    /// What to tell the sender of `text`, in which the fault was found. A value that is not what it has to be may be
    /// no JSON at all, here or further on, which is the better thing to say.
    #[cold]
    pub(crate) fn refusal(self, text: &str) -> Refusal {
        if let Kind::Meaning(_) = self.0.kind
            && let Err(error) = serde_json::from_str::<IgnoredAny>(text)
        {
            return Refusal::new(Code::BadJson, format!("not JSON: {error}"));
        }
        self.into()
    }
}

impl From<Fault> for Refusal {
    #[cold]
    fn from(fault: Fault) -> Self {
        let Wrong { kind, path, why } = *fault.0;
        match kind {
            Kind::Syntax { at } => {
                Self::new(Code::BadJson, format!("not JSON at byte {at}: {why}"))
            }
            Kind::Meaning(code) if path.is_empty() => Self::new(code, why),
            Kind::Meaning(code) => Self::new(code, format!("{path}: {why}")),
        }
    }
}

/// The beginning of a name from outside.
fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
