//! The names of an object's fields so far, to find duplicates. Objects of the protocol are small, so they are compared one
//! by one; of an object with more fields only the first are.

use std::borrow::Cow;

/// How many names are compared.
const MAX_NAMES: usize = 24;

/// Names that were seen.
pub(super) struct Seen<'a> {
    names: [&'a str; MAX_NAMES],
    len: usize,
    /// Names with escapes, which are rare.
    escaped: Vec<String>,
}

impl<'a> Seen<'a> {
    #[inline]
    pub(super) fn new(first: Option<&'a str>) -> Self {
        let mut names = [""; MAX_NAMES];
        names[0] = first.unwrap_or_default();
        Self {
            names,
            len: usize::from(first.is_some()),
            escaped: Vec::new(),
        }
    }

    /// Adds a name; `false` where it was there.
    #[allow(clippy::ptr_arg, reason = "a borrowed name is kept without copying it")]
    #[inline]
    pub(super) fn add(&mut self, name: &Cow<'a, str>) -> bool {
        let names = &self.names[..self.len];
        if names.iter().any(|seen| *seen == &**name) || self.is_escaped(name) {
            return false;
        }
        match name {
            Cow::Borrowed(name) if self.len < MAX_NAMES => {
                self.names[self.len] = name;
                self.len += 1;
            }
            Cow::Borrowed(_) => {}
            Cow::Owned(name) => self.escaped.push(name.clone()),
        }
        true
    }

    fn is_escaped(&self, name: &str) -> bool {
        self.escaped.iter().any(|seen| seen == name)
    }
}
